"""The paper's tables and figures as experiments that one command runs."""

from collections.abc import Sequence

import click

from surrokit import hookimpl


@hookimpl
def surrokit_commands() -> Sequence[click.Command]:
    """Offer the paper's table and figures."""
    from surrokit_paper.command import reproduce

    return (reproduce,)
