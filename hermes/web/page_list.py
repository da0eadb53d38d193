"""All pages of the dashboard. Imported with the first request for one of them."""

from __future__ import annotations

from aiohttp import web

from hermes.web.page_kit import PageKit
from hermes.web.pages.actor_page import ActorPage
from hermes.web.pages.approval_page import ApprovalPage
from hermes.web.pages.asset_route import AssetRoute
from hermes.web.pages.job_page import JobPage
from hermes.web.pages.live_stream import LiveStream
from hermes.web.pages.log_page import LogPage
from hermes.web.pages.login_page import LoginPage
from hermes.web.pages.memory_page import MemoryPage
from hermes.web.pages.outbox_page import OutboxPage
from hermes.web.pages.overview_page import OverviewPage
from hermes.web.pages.picture_route import PictureRoute
from hermes.web.pages.process_page import ProcessPage
from hermes.web.pages.session_action import SessionActions
from hermes.web.pages.session_list_page import SessionListPage
from hermes.web.pages.session_page import SessionPage
from hermes.web.pages.setting_page import SettingPage
from hermes.web.pages.skill_page import SkillPage
from hermes.web.pages.trace_page import TracePage


def page_routes(kit: PageKit) -> list[web.RouteDef]:
    pages = (
        OverviewPage(kit),
        LoginPage(kit),
        ActorPage(kit),
        SessionListPage(kit),
        SessionPage(kit),
        SessionActions(kit),
        ApprovalPage(kit),
        ProcessPage(kit),
        OutboxPage(kit),
        TracePage(kit),
        SettingPage(kit),
        LogPage(kit),
        JobPage(kit),
        MemoryPage(kit),
        SkillPage(kit),
        PictureRoute(kit),
        LiveStream(kit),
        AssetRoute(),
    )
    return [route for page in pages for route in page.routes()]
