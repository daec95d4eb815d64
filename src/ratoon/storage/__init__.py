"""Files of models and checkpoints, which survive kills and power cuts and are safe to open.

A file is a safetensors container; `docs/file-format.md` specifies it.
"""

from __future__ import annotations

from ratoon.storage.atomic import SaveError as SaveError
from ratoon.storage.checkpoint import Checkpoint as Checkpoint
from ratoon.storage.checkpoint import ResumeError as ResumeError
from ratoon.storage.directory import CheckpointDirectory as CheckpointDirectory
from ratoon.storage.directory import CheckpointWarning as CheckpointWarning
from ratoon.storage.directory import LockedError as LockedError
from ratoon.storage.document import Document as Document
from ratoon.storage.identity import fingerprint as fingerprint
from ratoon.storage.read import document_from_bytes as document_from_bytes
from ratoon.storage.read import read_document as read_document
from ratoon.storage.read import verify_file as verify_file
from ratoon.storage.training_state import history_from_arrays as history_from_arrays
from ratoon.storage.training_state import history_to_arrays as history_to_arrays
from ratoon.storage.training_state import state_from_parts as state_from_parts
from ratoon.storage.training_state import state_to_parts as state_to_parts
from ratoon.storage.write import document_to_bytes as document_to_bytes
from ratoon.storage.write import write_document as write_document
