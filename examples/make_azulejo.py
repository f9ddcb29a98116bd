"""Draws azulejo.png, the small seamless tile that the README repeats into a wall."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Field = NDArray[np.float64]
Mask = NDArray[np.bool_]
Colour = tuple[int, int, int]

SIDE = 96
SUPERSAMPLING = 8

CREAM: Colour = (250, 246, 234)
MIST: Colour = (212, 226, 240)
SKY: Colour = (128, 170, 218)
COBALT: Colour = (28, 70, 158)
NAVY: Colour = (16, 38, 104)
OCHRE: Colour = (226, 166, 56)


@dataclass(frozen=True)
class Polar:
    """Distance and angle of every sample, seen from one point of the tile."""

    radius: Field
    angle: Field


class Canvas:
    """The supersampled tile, painted over layer by layer."""

    def __init__(self, colour: Colour) -> None:
        samples = SIDE * SUPERSAMPLING
        self.pixels: Field = np.full((samples, samples, 3), colour, dtype=np.float64)

    def paint(self, where: Mask, colour: Colour) -> None:
        """Cover the masked samples with an opaque glaze."""
        self.pixels[where] = colour

    def average(self) -> NDArray[np.uint8]:
        """Box-average the samples of each pixel, which is what smooths the edges."""
        blocks = self.pixels.reshape(SIDE, SUPERSAMPLING, SIDE, SUPERSAMPLING, 3)
        averaged: Field = blocks.mean(axis=(1, 3))
        return np.rint(averaged).astype(np.uint8)


def fold_quadrants() -> tuple[Field, Field]:
    """Return |x| and |y| of every sample: 0 at the tile's centre, 1 on its edges."""
    samples = SIDE * SUPERSAMPLING
    # The fold makes the tile mirror symmetric about its edges, hence seamless.
    # Whole numbers before the division make the four quadrants equal to the last bit.
    folded = np.abs(2 * np.arange(samples) + 1 - samples) / samples
    across, down = np.meshgrid(folded, folded)
    return across, down


def look_from(across: Field, down: Field) -> Polar:
    """Express offsets from a point in polar form."""
    return Polar(np.hypot(across, down), np.arctan2(down, across))


def petals(seen: Polar, count: int, inner: float, outer: float, width: float, turn: float) -> Mask:
    """Shape pointed petals that reach from one radius to another around a point.

    Each petal is as wide as a half wave of a sine, with its belly moved
    outwards, as a loaded brush leaves it.
    """
    pitch = 2 * np.pi / count
    off_axis = (seen.angle - turn + pitch / 2) % pitch - pitch / 2
    along = seen.radius * np.cos(off_axis)
    aside = np.abs(seen.radius * np.sin(off_axis))
    progress = (along - inner) / (outer - inner)
    # The belly is not used outside of the petal, because the sine is not quite zero at its ends.
    belly: Field = np.sin(np.pi * np.clip(progress, 0, 1) ** 1.25)
    return (progress > 0) & (progress < 1) & (aside < width * belly)


def star(seen: Polar, points: int, valley: float, tip: float, turn: float) -> Mask:
    """Shape a straight-sided star around a point."""
    half = np.pi / points
    off_tip = np.abs((seen.angle - turn + half) % (2 * half) - half)
    # The side from the tip to the valley is a line: solve it for the radius.
    rise: float = valley * np.sin(half)
    run: float = tip - valley * np.cos(half)
    beyond: Field = seen.radius * (rise * np.cos(off_tip) + run * np.sin(off_tip))
    return beyond < tip * rise


def ring(seen: Polar, inner: float, outer: float) -> Mask:
    """Shape a circular band around a point."""
    return (inner <= seen.radius) & (seen.radius < outer)


def disc(seen: Polar, radius: float) -> Mask:
    """Shape a full circle around a point."""
    return seen.radius < radius


def draw_ground(canvas: Canvas, corner: Polar) -> None:
    """Fill the middle, which the arcs leave free, with cobalt."""
    canvas.paint(~disc(corner, 0.96), COBALT)


def draw_arcs(canvas: Canvas, corner: Polar) -> None:
    """Draw quarter circles around the corners, which four adjacent tiles complete."""
    canvas.paint(ring(corner, 0.93, 0.965), CREAM)
    canvas.paint(ring(corner, 0.78, 0.93), COBALT)
    canvas.paint(ring(corner, 0.70, 0.735), SKY)
    draw_beads(canvas, corner)


def draw_beads(canvas: Canvas, corner: Polar) -> None:
    """Thread cream beads along the arcs."""
    pitch = np.pi / 14
    # A bead lies on each edge, so that the neighbour completes it.
    off_bead = (corner.angle + pitch / 2) % pitch - pitch / 2
    bead = look_from(
        corner.radius * np.cos(off_bead) - 0.855,
        corner.radius * np.sin(off_bead),
    )
    canvas.paint(disc(bead, 0.042), CREAM)


def draw_rosette(canvas: Canvas, corner: Polar) -> None:
    """Draw a quarter of the large flower into every corner."""
    between = np.pi / 8
    canvas.paint(petals(corner, 8, 0.10, 0.69, 0.084, between), SKY)
    canvas.paint(petals(corner, 8, 0.04, 0.69, 0.134, 0.0), CREAM)
    canvas.paint(petals(corner, 8, 0.08, 0.66, 0.114, 0.0), COBALT)
    canvas.paint(petals(corner, 8, 0.22, 0.56, 0.045, 0.0), MIST)
    canvas.paint(disc(corner, 0.205), CREAM)
    canvas.paint(disc(corner, 0.165), OCHRE)
    canvas.paint(disc(corner, 0.07), NAVY)


def draw_star(canvas: Canvas, centre: Polar) -> None:
    """Set the star into the middle, its long points towards the neighbours."""
    between = np.pi / 4
    canvas.paint(star(centre, 4, 0.165, 0.43, between), SKY)
    canvas.paint(star(centre, 4, 0.19, 0.80, 0.0), CREAM)
    canvas.paint(star(centre, 4, 0.08, 0.58, 0.0), SKY)
    canvas.paint(disc(centre, 0.185), CREAM)
    canvas.paint(disc(centre, 0.145), OCHRE)
    canvas.paint(disc(centre, 0.06), NAVY)


def main() -> None:
    """Draw the tile and write it beside this script."""
    across, down = fold_quadrants()
    centre = look_from(across, down)
    corner = look_from(1 - across, 1 - down)
    canvas = Canvas(CREAM)
    draw_ground(canvas, corner)
    draw_arcs(canvas, corner)
    draw_rosette(canvas, corner)
    draw_star(canvas, centre)
    path = Path(__file__).with_name("azulejo.png")
    Image.fromarray(canvas.average()).save(path, optimize=True)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
