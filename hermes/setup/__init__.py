"""Setting up a memory provider: its form, the answers, where each is kept. Values in and out, no terminal."""

from hermes.setup.fields import Field, fields_of
from hermes.setup.form import Form, Question

__all__ = ["Field", "Form", "Question", "fields_of"]
