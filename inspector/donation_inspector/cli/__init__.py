"""The command line: `inspect`, `measure`, `corpus` and `diff`; README.md has the contract with whoever calls it."""

from donation_inspector.cli.entry import main as main
