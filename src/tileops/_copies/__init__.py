"""How bytes are copied, in integers alone: no arrays, no libraries.

`steps` describes a copy as loops, and the steps that it can take; `cpu` plans the steps on a CPU,
`job` everything else about such a copy, `gpu` the kernel on a GPU. `cost`, `chains`, `places` and
`machine` are what they know of costs and machines. `tileops.execute` carries copies out.
"""
