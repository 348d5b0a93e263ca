"""The paper's tables and figures as experiments that one command runs."""
