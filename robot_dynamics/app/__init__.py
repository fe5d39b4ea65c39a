"""The command line, its reports and pictures, the demos."""
