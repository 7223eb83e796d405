"""Trust: definitions are what they were when they were trusted, and newcomers are not taken for anybody else."""

from truename.trust.admission import Admission, Drift, Offer, admit
from truename.trust.book import PinBook, Pinned, Seen

__all__ = ["Admission", "Drift", "Offer", "PinBook", "Pinned", "Seen", "admit"]
