"""How bytes are copied, in integers alone: no arrays, no libraries.

`steps` describes a copy as loops, and the steps that it can take; `cpu` plans the steps on a CPU,
`job` everything else about such a copy, `gpu` the kernel on a GPU. `cost` estimates what steps
cost, and `chains` where a library's own repetition costs less. `tileops.execute` carries them out.
"""
