# Parses OpenMetrics text from standard input by the reference parser, and prints the families as JSON.
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = text_string_to_metric_families(sys.stdin.buffer.read().decode("utf-8"))
json.dump(
    [
        {
            "name": family.name,
            "type": family.type,
            "unit": family.unit,
            "samples": [[sample.name, sample.labels, str(sample.value)] for sample in family.samples],
        }
        for family in families
    ],
    sys.stdout,
)
