# SPDX-License-Identifier: Apache-2.0
"""The command line, its reports and pictures, and the demos."""
