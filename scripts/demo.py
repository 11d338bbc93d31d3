"""The inspector on a real training step, in a terminal: the report with the measured saving, and demo.html."""

import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))


def main() -> None:
    started = time.perf_counter()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - started:5.1f} s] {what}", flush=True)

    say("a transformer of 4 layers x 768, trained with AdamW (notebooks/train_step.py)")
    import donation_inspector as di
    from train_step import example, train_step

    # Held here: the inspector itself keeps no big array alive, and measures with the real ones.
    arguments = example()
    inspection = di.inspect(train_step, *arguments)
    say("traced; compiling it without donation, with JAX's own, and with what the xDSL pass makes")
    inspection.compare()
    say("compiled; running each variant in a process of its own")
    inspection.measure()
    say("measured\n")
    print(inspection.report())
    inspection.to_html(ROOT / "demo.html")
    print(f"\nThe same as a page: {(ROOT / 'demo.html').as_uri()}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; `make demo` starts again from here")
