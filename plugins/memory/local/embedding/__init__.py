"""Finding by meaning: what turns texts into vectors, where those are kept, and how they are compared.

Everything in here needs numpy. Local memory works without: nothing outside imports this unless a model is set up.
"""
