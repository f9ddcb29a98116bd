"""JAX: its own tile and broadcast_to, eager and traced.

The agnostic route through split axes takes about twice as long eagerly.
"""

from typing import Any

import jax
import jax.export
import jax.numpy as jnp

from tileops._plan import Plan
from tileops.execute.array_api import Executor

_Symbol = type(jax.export.symbolic_shape("n")[0])


class Jax(Executor):
    """One primitive a call; arrays never change, so there is no view and no `out`."""

    def name(self, x: Any) -> str:
        """Name the library, whose classes live in another package."""
        return "jax"

    def itemsize(self, x: Any) -> int:
        """Give the bytes of an element."""
        return int(x.dtype.itemsize)

    def view(self, x: Any, plan: Plan) -> Any:
        """Give the array itself where nothing changes: the library has no other views."""
        return x if plan.is_identity else None

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat into a new array."""
        if plan.is_identity and not isinstance(x, jax.core.Tracer):
            return jnp.array(x, copy=True)  # broadcast_to would return the same buffer
        if plan.merges:
            return jnp.tile(x, plan.repeats)
        return jnp.broadcast_to(x, plan.shape)

    def is_symbolic(self, count: Any) -> bool:
        """Whether a count is a symbolic integer of jax.export."""
        return isinstance(count, _Symbol)

    def why_unknown(self, array: Any) -> str | None:
        """Say how to make a tracer's values static."""
        if isinstance(array, jax.core.Tracer):
            return (
                "pass a tuple of int and name the argument in jax.jit(..., static_argnums=...), "
                "or close over it"
            )
        return None

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Copy a NumPy array onto a device, such as "cpu" or "cuda:1"."""
        if device is None:
            return jnp.array(array)
        kind, _, number = device.partition(":")
        return jax.device_put(array, jax.devices(kind)[int(number or 0)])

    def devices(self) -> list[str]:
        """Name each device of the default platform."""
        return [f"{device.platform}:{device.id}" for device in jax.devices()]


executor = Jax()
