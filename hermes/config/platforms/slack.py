"""Settings and registry entry of Slack."""

from __future__ import annotations

from hermes.config.platforms.entry import PlatformEntry
from hermes.config.schema import address_complaint, host_complaint, setting, shaped
from hermes.domain.values import dataclass

_user_complaint = shaped(r"[UW][A-Z0-9]{2,20}|\*", 'must be user ids like U024BE7LH, or "*"')
_admin_complaint = shaped(r"[UW][A-Z0-9]{2,20}", "must be user ids like U024BE7LH")
_channel_complaint = shaped(r"[CG][A-Z0-9]{2,20}", "must be channel ids like C024BE7LH")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackConfig:
    enabled: bool = setting(False)
    transport: str = setting("socket", choices=("socket", "http"))
    host: str = setting("127.0.0.1", complaint=host_complaint)
    port: int = setting(8645, least=0, most=65_535)
    tokens_file: str = setting("", path=True)
    base_url: str = setting("", complaint=address_complaint)
    allowed_users: tuple[str, ...] = setting((), complaint=_user_complaint)
    admins: tuple[str, ...] = setting((), complaint=_admin_complaint)
    require_mention: bool = setting(True)
    free_response_channels: tuple[str, ...] = setting((), complaint=_channel_complaint)
    allowed_channels: tuple[str, ...] = setting((), complaint=_channel_complaint)
    open_channels: tuple[str, ...] = setting((), complaint=_channel_complaint)
    reactions: bool = setting(True)

    @property
    def places(self) -> tuple[str, ...]:
        return self.allowed_channels

    @property
    def open_places(self) -> tuple[str, ...]:
        return self.open_channels


SLACK = PlatformEntry(
    name="slack",
    hint="You are in Slack. Keep it short; use *bold*, lists and code blocks; tables do not work.",
    made_by="hermes.app.factories.slack",
    set_up_by="hermes.cli.setup.slack_check",
)
