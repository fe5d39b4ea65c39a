# SPDX-License-Identifier: Apache-2.0
"""The functions of a robot as kernels, and what open and closed chains have in common.

| file                 | contents                                                          |
|----------------------|-------------------------------------------------------------------|
| functions.py         | the functions: their arguments and results                        |
| chain.py             | `Chain`: what `OpenChain` and `closure.ClosedChain` both are      |
| open_chain.py        | `OpenChain`: the functions of a tree                              |
| regressor_kernel.py  | the regressor of a tree                                           |
| companion.py         | what is derived from a robot that may change                      |
| kernel_parameters.py | the parameters of kernels as a function of gravity and payloads   |
"""
