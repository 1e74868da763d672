__version__ = "2.8.3"
raise ImportError("the source tree hides what is installed")
