"""What a process is conditioned on."""
