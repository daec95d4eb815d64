"""Export of trained models: ONNX files, and smaller models."""

from __future__ import annotations

from ratoon.export.graph import to_onnx as to_onnx
from ratoon.export.pipeline import register_converters as register_converters
from ratoon.export.slim import SlimModel as SlimModel
from ratoon.export.slim import compare_slim as compare_slim
from ratoon.export.slim import slim as slim
