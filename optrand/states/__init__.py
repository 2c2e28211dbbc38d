"""Ad measurement: states of event-level reports, their channel capacity, and the best randomizer of them.

==========================  ===========================================================================
:func:`trigger_states`      states of the flexible event-level reports of the Attribution Reporting API
:func:`noise_rate`          chance that the state is replaced by a random one, as published
:func:`capacity`            capacity in bits of randomized response over states, as published
:func:`channel_capacity`    capacity in bits of any randomizer, rounded up
:func:`best`                randomizer of most expected utility under an epsilon and a capacity
==========================  ===========================================================================
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.states._optimum import BestRandomizer, best, capacity, channel_capacity, noise_rate
from optrand.states._trigger import TriggerStates, trigger_states

__all__ = ["BestRandomizer", "TriggerStates", "best", "capacity", "channel_capacity", "noise_rate", "trigger_states"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
