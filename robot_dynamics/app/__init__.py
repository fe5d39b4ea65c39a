"""What people start: the command line, its reports and pictures, the demos."""
