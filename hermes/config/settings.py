"""All settings: default, limits, and whether they can change while the daemon runs.

Each section is a frozen class; `Config()` holds the defaults. A setting added here is known to the file and the
environment. `config/hermes.yaml` must document it, or a test fails.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, cast

from hermes.config.cron_settings import CronConfig
from hermes.config.events import event_settings as events
from hermes.config.mcp.mcp_servers import SECTION as MCP_SERVERS
from hermes.config.model_settings import AuxiliaryConfig, ModelConfig, base_url_complaint
from hermes.config.platforms import PLATFORMS
from hermes.config.platforms.entry import PlatformSettings
from hermes.config.platforms.slack import SlackConfig
from hermes.config.platforms.telegram import TelegramConfig
from hermes.config.reset_override import complaint_about, complaint_about_all
from hermes.config.schema import Rule, Value, host_complaint, setting, shaped
from hermes.config.secret import Secret, usable
from hermes.config.time_zone import zone_complaint
from hermes.config.toolset import EVERY_TOOLSET, GUEST_TOOLSETS, complaint_about_tool
from hermes.config.work_settings import (
    CheckpointsConfig,
    CodeExecutionConfig,
    DelegationConfig,
    GoalsConfig,
    ImageGenConfig,
    WebConfig,
)
from hermes.domain.errors import ConfigError
from hermes.domain.mcp.server_spec import McpServerSpec
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_MB = 1 << 20
_DAY_S = 86_400.0
_INSTANT_S = 0.01
_MAX_USD = 1_000_000.0


_variable_complaint = shaped(
    r"([A-Za-z_][A-Za-z0-9_]*)?", "must be the name of an environment variable, not the key itself"
)
_origin_complaint = shaped(r"https?://[^\s/*@]+", "must be origins like https://app.example, without a path")
_account_complaint = shaped(r"[a-z][a-z0-9_-]*:\S+", "must be PLATFORM:USER, such as telegram:12345")
_absolute_complaint = shaped(r"/.*", "must be absolute paths")
_host_pattern_complaint = shaped(
    r"(?i)(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*", "must be host names like example.com or *.example.com"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    enabled: bool = setting(True)
    host: str = setting("127.0.0.1", complaint=host_complaint)
    port: int = setting(8642, least=0, most=65_535)
    key_file: str = setting("", path=True)
    allow_yolo: bool = setting(False)
    commands: str = setting("safe", choices=("none", "safe", "all"))
    cors_origins: tuple[str, ...] = setting((), complaint=_origin_complaint, live=True)
    allowed_hosts: tuple[str, ...] = setting((), complaint=host_complaint)
    max_body_bytes: int = setting(8 * _MB, least=1024, most=1024 * _MB)
    max_connections: int = setting(2048, least=1, most=1_000_000)
    max_connections_per_peer: int = setting(0, least=0, most=1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardConfig:
    enabled: bool = setting(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatConfig:
    """Settings of all chat platforms."""

    strangers: str = setting("pair", choices=("pair", "ignore"))
    group_sessions_per_user: bool = setting(True)
    restart_banner: bool = setting(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaConfig:
    max_file_mb: int = setting(20, least=1, most=2000)
    max_total_mb: int = setting(1024, least=1, most=10_000_000)
    keep_days: float = setting(7.0, least=0.01, most=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionConfig:
    base_url: str = setting("", complaint=base_url_complaint)
    model: str = setting("whisper-1")
    api_key_env: str = setting("", complaint=_variable_complaint)
    timeout_s: float = setting(60.0, least=1, most=3600)

    def api_key(self, environ: Mapping[str, str]) -> Secret | None:
        """Read the key of the transcription. None if the endpoint needs no key."""
        if not self.api_key_env:
            return None
        if not (value := environ.get(self.api_key_env, "").strip()):
            raise ConfigError(
                f"the transcription's key is missing: set the environment variable {self.api_key_env} "
                '(transcription.api_key_env); for an endpoint that needs no key, set that to ""',
                missing_variables=(self.api_key_env,),
            )
        return usable(value, f"the key in {self.api_key_env}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    idle_after_s: float = setting(600.0, least=_INSTANT_S, most=365 * _DAY_S, live=True)
    max_queue: int = setting(32, least=1, most=10_000, live=True)
    max_live: int = setting(20_000, least=1, most=10_000_000, live=True)
    memory_limit_mb: int = setting(0, least=0, most=16_777_216, live=True)
    auto_prune: bool = setting(False)
    retention_days: float = setting(90.0, least=0.01, most=36_500)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsConfig:
    max_concurrent: int = setting(1024, least=1, most=100_000, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    max_turns: int = setting(90, least=1, most=10_000, live=True)
    busy_input_mode: str = setting("queue", choices=("queue", "steer", "interrupt"), live=True)
    personality: str = setting("")
    context_files: bool = setting(True)
    context_file_max_chars: int = setting(20_000, least=100, most=1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    default: tuple[str, ...] = setting((*EVERY_TOOLSET, "send_file", "image_gen"), complaint=complaint_about_tool)
    api: tuple[str, ...] = setting((*EVERY_TOOLSET, "send_file", "image_gen"), complaint=complaint_about_tool)
    cli: tuple[str, ...] = setting(EVERY_TOOLSET, complaint=complaint_about_tool)
    guest: tuple[str, ...] = setting(GUEST_TOOLSETS, complaint=complaint_about_tool)
    disabled: tuple[str, ...] = setting((), complaint=complaint_about_tool)
    output_keep_days: float = setting(7.0, least=0.01, most=3650)
    output_max_total_mb: int = setting(1024, least=1, most=10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    memory_enabled: bool = setting(True, live=True)
    user_profile_enabled: bool = setting(True, live=True)
    memory_char_limit: int = setting(2200, least=100, most=100_000, live=True)
    user_char_limit: int = setting(1375, least=100, most=100_000, live=True)
    nudge_interval: int = setting(10, least=0, most=10_000, live=True)
    memory_notifications: bool = setting(True, live=True)
    review_max_steps: int = setting(8, least=1, most=100, live=True)
    review_max_tokens: int = setting(100_000, least=0, most=100_000_000, live=True)
    review_max_usd: float = setting(0.0, least=0, most=1_000, live=True)
    write_approval: bool = setting(False, live=True)
    owner_accounts: tuple[str, ...] = setting((), complaint=_account_complaint, live=True)
    recall: bool = setting(False, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticConfig:
    provider: str = setting("none", choices=("none", "local", "endpoint"))
    model: str = setting("text-embedding-3-small")
    base_url: str = setting("https://api.openai.com/v1", complaint=base_url_complaint)
    api_key_env: str = setting("OPENAI_API_KEY", complaint=_variable_complaint)
    min_similarity: float = setting(0.3, least=0, most=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig:
    provider: str = setting("none", choices=("none", "builtin", "honcho"))
    every: int = setting(1, least=1, most=1000, live=True)
    prompt_chars: int = setting(1000, least=0, most=20_000, live=True)
    honcho_url: str = setting("", complaint=base_url_complaint)
    honcho_workspace: str = setting("hermes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalConfig:
    cwd: str = setting("", path=True)
    timeout_s: float = setting(180.0, least=1, most=_DAY_S)
    max_timeout_s: float = setting(600.0, least=1, most=_DAY_S)
    pass_variables: tuple[str, ...] = setting((), complaint=_variable_complaint)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    mode: str = setting("auto", choices=("auto", "off"))
    read_paths: tuple[str, ...] = setting((), complaint=_absolute_complaint)
    write_paths: tuple[str, ...] = setting((), complaint=_absolute_complaint)
    network: str = setting("proxy", choices=("proxy", "none"))
    allowed_hosts: tuple[str, ...] = setting(("default",), complaint=_host_pattern_complaint)
    git_config: str = setting("ro", choices=("ro", "rw"))
    memory_mb: int = setting(4096, least=64, most=16_777_216)
    max_processes: int = setting(512, least=16, most=100_000)
    debuggers: bool = setting(False)
    user: str = setting("")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesConfig:
    max_per_session: int = setting(16, least=0, most=1000, live=True)
    max_total: int = setting(64, least=0, most=10_000, live=True)
    heartbeat_s: float = setting(5.0, least=0.1, most=14, live=True)  # a crash is noticed within 15 s
    stale_after_minutes: float = setting(30.0, least=0.1, most=525_600, live=True)
    max_age_hours: float = setting(24.0, least=0.01, most=87_600, live=True)
    keep_on_stop: bool = setting(True, live=True)


# Kinds of commands that lose files, mostly in a project, and neither send anything nor change what others run.
JUDGED = (
    *("find-delete", "git-branch-delete", "git-clean", "git-discard", "git-reset-hard", "git-rewrite"),
    "recursive-delete",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsConfig:
    mode: str = setting("manual", choices=("manual", "off"))
    deny: tuple[str, ...] = setting(())
    judged: tuple[str, ...] = setting(JUDGED, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionConfig:
    enabled: bool = setting(True, live=True)
    threshold: float = setting(0.5, least=0.05, most=0.95, live=True)
    floor_tokens: int = setting(64_000, least=0, most=100_000_000, live=True)
    target_ratio: float = setting(0.2, least=0.05, most=0.8, live=True)
    protect_first_n: int = setting(3, least=0, most=100, live=True)
    model: str = setting("", live=True)
    timeout_s: float = setting(60.0, least=1.0, most=3600.0, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsConfig:
    index_max_chars: int = setting(8000, least=500, most=100_000)
    creation_nudge_interval: int = setting(10, least=0, most=10_000, live=True)
    write_approval: bool = setting(False)
    trusted_sources: tuple[str, ...] = setting(())
    rollback: bool = setting(True)
    curator: bool = setting(True)
    consolidate: bool = setting(False)
    stale_days: float = setting(30.0, least=0.01, most=36_500)
    archive_days: float = setting(90.0, least=0.01, most=36_500)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResetConfig:
    mode: str = setting("none", choices=("none", "idle", "daily", "both"), live=True)
    idle_minutes: int = setting(1440, least=1, most=5_256_000, live=True)
    at_hour: int = setting(4, least=0, most=23, live=True)
    timezone: str = setting("", complaint=zone_complaint, live=True)
    overrides: tuple[str, ...] = setting((), complaint=complaint_about, together=complaint_about_all, live=True)
    notify: bool = setting(True, live=True)
    notify_exclude_platforms: tuple[str, ...] = setting(("api", "webhook"), live=True)
    on_stale: str = setting("report", choices=("report", "end"), live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig:
    session_tokens: int = setting(0, least=0, most=10**15, live=True)
    session_usd: float = setting(0.0, least=0, most=_MAX_USD, live=True)
    day_tokens: int = setting(0, least=0, most=10**15, live=True)
    day_usd: float = setting(0.0, least=0, most=_MAX_USD, live=True)
    guest_session_tokens: int = setting(0, least=0, most=10**15, live=True)
    guest_session_usd: float = setting(0.0, least=0, most=_MAX_USD, live=True)
    guest_day_tokens: int = setting(500_000, least=0, most=10**15, live=True)
    guest_day_usd: float = setting(0.0, least=0, most=_MAX_USD, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    map_size_mb: int = setting(1024, least=1, most=16_777_216)
    inbox_days: int = setting(7, least=1, most=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeConfig:
    when: str = setting("at_once", choices=("at_once", "next_message"))
    boot_loop_starts: int = setting(4, least=0, most=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownConfig:
    drain_s: float = setting(5.0, least=0, most=3600, live=True)
    timeout_s: float = setting(10.0, least=_INSTANT_S, most=3600, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelConfig:
    enabled: bool = setting(False)
    endpoint: str = setting("http://127.0.0.1:4318", complaint=base_url_complaint)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    level: str = setting("INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"), live=True)
    json: bool = setting(False)
    file: bool = setting(True)
    rotation_mb: int = setting(10, least=1, most=100_000)
    keep: int = setting(5, least=1, most=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    model: ModelConfig = ModelConfig()
    auxiliary: AuxiliaryConfig = AuxiliaryConfig()
    api: ApiConfig = ApiConfig()
    dashboard: DashboardConfig = DashboardConfig()
    chat: ChatConfig = ChatConfig()
    telegram: TelegramConfig = TelegramConfig()
    slack: SlackConfig = SlackConfig()
    media: MediaConfig = MediaConfig()
    transcription: TranscriptionConfig = TranscriptionConfig()
    image_gen: ImageGenConfig = ImageGenConfig()
    sessions: SessionsConfig = SessionsConfig()
    turns: TurnsConfig = TurnsConfig()
    agent: AgentConfig = AgentConfig()
    tools: ToolsConfig = ToolsConfig()
    delegation: DelegationConfig = DelegationConfig()
    code_execution: CodeExecutionConfig = CodeExecutionConfig()
    goals: GoalsConfig = GoalsConfig()
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    memory: MemoryConfig = MemoryConfig()
    profile: ProfileConfig = ProfileConfig()
    semantic: SemanticConfig = SemanticConfig()
    terminal: TerminalConfig = TerminalConfig()
    sandbox: SandboxConfig = SandboxConfig()
    processes: ProcessesConfig = ProcessesConfig()
    approvals: ApprovalsConfig = ApprovalsConfig()
    web: WebConfig = WebConfig()
    compression: CompressionConfig = CompressionConfig()
    skills: SkillsConfig = SkillsConfig()
    session_reset: SessionResetConfig = SessionResetConfig()
    cron: CronConfig = CronConfig()
    budget: BudgetConfig = BudgetConfig()
    boot: events.BootConfig = events.BootConfig()
    hooks: events.HooksConfig = events.HooksConfig()
    webhooks: events.WebhooksConfig = events.WebhooksConfig()
    quick_commands: events.QuickCommandsConfig = events.QuickCommandsConfig()
    plugins: events.PluginsConfig = events.PluginsConfig()
    storage: StorageConfig = StorageConfig()
    resume: ResumeConfig = ResumeConfig()
    shutdown: ShutdownConfig = ShutdownConfig()
    log: LogConfig = LogConfig()
    otel: OtelConfig = OtelConfig()
    mcp_servers: tuple[McpServerSpec, ...] = ()  # a section of names instead of settings

    def platforms(self) -> dict[str, PlatformSettings]:
        """Return the settings of each chat platform, by name."""
        return {name: getattr(self, name) for name in PLATFORMS}

    def value(self, name: str) -> Value:
        if name == MCP_SERVERS:
            return tuple(each.name for each in self.mcp_servers)
        section, key = name.split(".")
        value: Value = getattr(getattr(self, section), key)
        return value

    @staticmethod
    def reloadable_changes(old: Config, new: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the settings that differ: those that take effect immediately, and those that need a restart."""
        changed = [setting for name, setting in SETTINGS.items() if old.value(name) != new.value(name)]
        servers = (MCP_SERVERS,) if old.mcp_servers != new.mcp_servers else ()
        return (
            (*(setting.name for setting in changed if setting.rule.live), *servers),
            tuple(setting.name for setting in changed if not setting.rule.live),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    section: str
    key: str
    default: Value
    rule: Rule

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"HERMES_{self.section}_{self.key}".upper()

    def check(self, value: Value) -> Value:
        """Return the checked value. Raises ValueError, whose message never repeats a possible secret."""
        texts = value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ()
        for text in texts:
            self._check_text(text)
        if isinstance(value, tuple) and self.rule.together and (complaint := self.rule.together(value)):
            raise ValueError(complaint)
        if isinstance(value, str) and self.rule.choices:
            return self._choice(value)
        if not isinstance(value, bool | str | tuple):
            self._check_range(value)
        return value

    def _check_text(self, text: str) -> None:
        if not text.isprintable():
            raise ValueError("must not contain control characters")
        if self.rule.complaint and (complaint := self.rule.complaint(text)):
            raise ValueError(complaint)

    def _choice(self, text: str) -> str:
        for choice in self.rule.choices:
            if choice.casefold() == text.casefold():
                return choice
        if self.rule.also is not None and self.rule.also(text):
            return text
        known = ", ".join(choice or "empty" for choice in self.rule.choices)
        raise ValueError(f"must be one of {known}, not {text[:40]!r}{self._near(text)}")

    def _near(self, text: str) -> str:
        from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

        near = get_close_matches(text, self.rule.choices, n=1)
        return f"; did you mean {near[0]}?" if near else ""

    def _check_range(self, number: float) -> None:
        if not self.rule.least <= number <= self.rule.most:
            raise ValueError(f"must be from {self.rule.least:.12g} to {self.rule.most:.12g}, not {number}")


SECTIONS: Mapping[str, type] = {each.name: type(each.default) for each in fields(Config) if each.name != MCP_SERVERS}

SETTINGS: Mapping[str, Setting] = {
    f"{section}.{each.name}": Setting(
        section=section,
        key=each.name,
        default=cast("Value", each.default),
        rule=each.metadata["rule"],
    )
    for section, kind in SECTIONS.items()
    for each in fields(kind)
}
