pytest_plugins = ["surrokit.testing.fixtures"]
