"""Parts of recipes/verify.py. Everything that imports torch is imported by the worker only, never by the supervisor."""
