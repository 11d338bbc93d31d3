"""How an Inspection is shown: the first sentences, the report, the payload, the widget."""
