"""From a formulation to straight-line code: record it once, print it, compile it."""
