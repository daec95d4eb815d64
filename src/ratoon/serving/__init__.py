"""A small HTTP service for one model: ``ratoon serve``."""

from __future__ import annotations

from ratoon.serving.app import create_app as create_app
from ratoon.serving.app import from_environment as from_environment
from ratoon.serving.service import Limits as Limits
from ratoon.serving.service import ModelService as ModelService
from ratoon.serving.service import RequestRefused as RequestRefused
