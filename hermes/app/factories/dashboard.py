"""Dashboard of a daemon, and the links that log in to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.services.keys import KeyService
from hermes.services.log_reader import LogReader
from hermes.services.setting_service import SettingService

if TYPE_CHECKING:
    from hermes.app.foundation import Foundation
    from hermes.app.parts import DaemonParts
    from hermes.web.dashboard import Dashboard
    from hermes.web.login_book import LoginBook


def make_dashboard(base: Foundation, parts: DaemonParts, keys: KeyService, logins: LoginBook) -> Dashboard:
    from hermes.web.dashboard import Dashboard  # noqa: PLC0415 - slow, see `import_servers`
    from hermes.web.login_limit import LoginLimit  # noqa: PLC0415
    from hermes.web.page_kit import DashboardParts  # noqa: PLC0415

    return Dashboard(
        DashboardParts(
            logins=logins,
            login_limit=LoginLimit(parts.system.ports.steady),
            api_key=base.api_key,
            keys=keys,
            figures=parts.figures,
            settings=SettingService(base.home, base.environ, reload=parts.operations.reload),
            logs=LogReader(base.home.log_dir / "hermes.log"),
            journal=base.journal,
            memories=parts.agent.memories,
            skills=parts.skills,
            media=base.home.media_dir,
        )
    )


def has_dashboard(base: Foundation) -> bool:
    return base.config.api.enabled and base.config.dashboard.enabled and not base.stop.embedded
