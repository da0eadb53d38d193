"""Loader of the configuration: valid values, and errors with their place."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace
from datetime import UTC
from importlib.resources import files
from pathlib import Path

import pytest

from hermes.app.system_settings import policy_book
from hermes.config.home import Home
from hermes.config.loader import Config, ModelConfig, explain_config, load_config, retired_warnings
from hermes.config.schema import RETIRED
from hermes.config.settings import SETTINGS
from hermes.config.time_zone import find_zone
from hermes.domain.errors import ConfigError

DOCUMENTED = Path(__file__).parents[2] / "config" / "hermes.yaml"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.from_environ({"HERMES_HOME": str(tmp_path)})


def load(home: Home, text: str | bytes, **environ: str) -> Config:
    home.config_file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_config(home, environ)


def problems(home: Home, text: str | bytes, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(home, text, **environ)
    assert caught.value.exit_code == 78
    return str(caught.value).replace(str(home.config_file), "FILE")


# ---------------------------------------------------------------- what is accepted


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "model:\n#  name: x\napi:\n", "{}", "\ufeff"])
def test_a_file_that_sets_nothing_leaves_the_defaults(home: Home, text: str) -> None:
    assert load(home, text) == Config()


def test_without_a_file_everything_is_at_its_default(home: Home) -> None:
    assert load_config(home, {}) == Config()


def test_the_file_is_read_and_the_environment_wins(home: Home) -> None:
    text = "api:\n  port: 9000\n  host: 0.0.0.0\nsessions: {idle_after_s: 1.5}\nlog: {level: debug, json: true}\n"
    config = load(home, text, HERMES_API_PORT="0", HERMES_API_CORS_ORIGINS="https://a.example, http://b:8080")
    assert (config.api.port, config.api.host) == (0, "0.0.0.0")
    assert config.api.cors_origins == ("https://a.example", "http://b:8080")
    assert config.sessions.idle_after_s == 1.5
    assert (config.log.level, config.log.json) == ("DEBUG", True)


def test_anchors_and_merge_keys_work_and_own_keys_win(home: Home) -> None:
    text = (
        "sessions:\n  max_queue: 5\n  <<: [{max_queue: 6, max_live: 7, <<: {idle_after_s: 8}}, {idle_after_s: 9}]\n"
        "model: {name: &n small}\napi: {allowed_hosts: [*n]}\n"
    )
    config = load(home, text)
    assert (config.sessions.max_queue, config.sessions.max_live, config.sessions.idle_after_s) == (5, 7, 8)
    assert config.api.allowed_hosts == ("small",)


def test_a_mapping_that_merges_itself_is_harmless(home: Home) -> None:
    assert load(home, "turns: &t\n  <<: *t\n  max_concurrent: 3\n").turns.max_concurrent == 3


def test_paths_are_relative_to_the_file(home: Home) -> None:
    config = load(home, "model: {api_key_file: keys/model}\napi: {key_file: /etc/key}\n")
    assert config.model.api_key_file == str(home.data_dir / "keys/model")
    assert config.api.key_file == "/etc/key"


def test_the_sources_of_settings_are_known(home: Home) -> None:
    home.config_file.write_text("api:\n  port: 9000\n")
    _, sources = explain_config(home, {"HERMES_LOG_LEVEL": "error"})
    assert sources == {
        "api.port": f"{home.config_file}:2:3",
        "log.level": "environment variable HERMES_LOG_LEVEL",
    }


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().api.port = 1  # type: ignore[misc]


# ---------------------------------------------------------------- the documentation


def test_the_documented_file_holds_exactly_the_defaults(home: Home) -> None:
    text = DOCUMENTED.read_text()
    assert load(home, text) == Config()
    _, sources = explain_config(home, {})
    assert set(sources) == set(SETTINGS)


def test_every_setting_is_documented_as_live_or_not() -> None:
    section, documented = "", {}
    for line in DOCUMENTED.read_text().splitlines():
        if found := re.fullmatch(r"(\w+):", line):
            section = found[1]
        elif found := re.fullmatch(r"  (\w+): \S.*? # (.+)", line):
            documented[f"{section}.{found[1]}"] = found[2]
    assert set(documented) == set(SETTINGS)
    marked = {name for name, comment in documented.items() if "(live)" in comment}
    assert marked == {name for name, setting in SETTINGS.items() if setting.rule.live}


def test_defaults_obey_their_own_rules() -> None:
    for setting in SETTINGS.values():
        assert setting.check(setting.default) == setting.default


# ---------------------------------------------------------------- mistakes in the file


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("api:\n\tport: 1\n", "FILE:2:1: YAML does not allow tabs as indentation; use spaces"),
        ("api:\n  port: 1\n\thost: a\n", "FILE:3:1: YAML does not allow tabs as indentation; use spaces"),
        ("api:\n  port:\t1\n", "FILE:2:8: YAML does not allow a tab here; use spaces"),
        ("api:\n  port: 1\n  port: 2\n", "FILE:3:3: 'port' is set twice; first in line 2"),
        ("api: {}\nlog: {}\napi: {}\n", "FILE:3:1: 'api' is set twice; first in line 1"),
        ("api:\n  host: a\0b\n", "FILE:2:10: the character U+0000 is not allowed"),
        ("api:\n  host: a\x1bb\n", "FILE:2:10: the character U+001B is not allowed"),
        ('api:\n  host: "a\\0b"\n', "FILE:2:9: api.host: must not contain control characters"),
        (b"api:\n  host: a\xff\n", "FILE:2:10: is not UTF-8 (byte 0xff)"),
        ("#\napi:\n  host: " + "a" * 1_000_000, "FILE:3:10001: the line is longer than 10000 bytes"),
        ("# small lines\n" * 50_000, "FILE: is larger than 262144 bytes"),
        ("- api\n- log\n", "FILE:1:1: expected sections like `api:`, found a list"),
        ("just text\n", "FILE:1:1: expected sections like `api:`, found the text 'just text'"),
        ("[" * 5000, "FILE:1:1: is nested too deeply; settings are section: key: value"),
        ("api: {port: 1\n", "FILE:2:1: is not valid YAML: expected ',' or '}', but got '<stream end>'"),
        (
            "api:\n    port: 1\n  host: x\n",
            "FILE:3:3: is not valid YAML: check the indentation here and in the lines above",
        ),
        (
            "api:\n  port: 1\n   host: x\n",
            "FILE:3:8: is not valid YAML: check the indentation here and in the lines above",
        ),
        ("api: {host: *gone}\n", "FILE:1:13: is not valid YAML: found undefined alias 'gone'"),
        (
            "api: {}\n---\nlog: {}\n",
            "FILE:2:1: is not valid YAML: expected a single document in the stream but found another document",
        ),
        ("? [a]\n: b\n", "FILE:1:3: a name cannot be a list"),
        ("api:\n  <<: 5\n", "FILE:2:7: only mappings can be merged, not '5'"),
        ("api: 8642\n", "FILE:1:6: api: expected settings below it, found '8642'"),
        ("api: [port]\n", "FILE:1:6: api: expected settings below it, found a list"),
        (
            "api:\n  port: 18446744073709551616\n",
            "FILE:2:9: api.port: must be from 0 to 65535, not 18446744073709551616",
        ),
        ("api: {port: -1}\n", "FILE:1:13: api.port: must be from 0 to 65535, not -1"),
        ("api: {port: 80.5}\n", "FILE:1:13: api.port: expected a whole number, found '80.5'"),
        ("api: {port: 010}\n", "FILE:1:13: api.port: expected a whole number, found '010'"),
        ("api: {port: 0x50}\n", "FILE:1:13: api.port: expected a whole number, found '0x50'"),
        ("api: {port: true}\n", "FILE:1:13: api.port: expected a whole number, found 'true'"),
        (
            "api: {port: '80'}\n",
            "FILE:1:13: api.port: expected a whole number, found the text '80' (remove the quotes)",
        ),
        (
            "api:\n  port:\n",
            "FILE:2:8: api.port: expected a whole number, found nothing (remove the line to use the default)",
        ),
        ("shutdown: {drain_s: .nan}\n", "FILE:1:21: shutdown.drain_s: expected a number, found '.nan'"),
        ("shutdown: {drain_s: .inf}\n", "FILE:1:21: shutdown.drain_s: expected a number, found '.inf'"),
        ("shutdown: {drain_s: 1e999}\n", "FILE:1:21: shutdown.drain_s: must be from 0 to 3600, not inf"),
        ("shutdown: {drain_s: 1:30}\n", "FILE:1:21: shutdown.drain_s: expected a number, found '1:30'"),
        ("api: {enabled: yes}\n", "FILE:1:16: api.enabled: expected true or false, found 'yes'"),
        ("api: {enabled: 'yes'}\n", "FILE:1:16: api.enabled: expected true or false, found the text 'yes'"),
        ("api: {enabled: 1}\n", "FILE:1:16: api.enabled: expected true or false, found '1'"),
        ("model: {name: 4.1}\n", "FILE:1:15: model.name: expected text, found '4.1' (put it in quotes)"),
        ("model: {name: [a]}\n", "FILE:1:15: model.name: expected text, found a list"),
        (
            "model: {name: !!python/name:os.system x}\n",
            "FILE:1:15: model.name: expected text, found 'x' (put it in quotes)",
        ),
        (
            "api: {cors_origins: ab}\n",
            "FILE:1:21: api.cors_origins: expected a list of texts, found the text 'ab' (write it as a list: [a, b])",
        ),
        (
            "api: {cors_origins: [https://a/path]}\n",
            "FILE:1:21: api.cors_origins: must be origins like https://app.example, without a path",
        ),
        (
            "api: {allowed_hosts: [{a: b}]}\n",
            "FILE:1:22: api.allowed_hosts: expected text in the list, found a section",
        ),
        ("api: {host: 'http://x'}\n", "FILE:1:13: api.host: must be a host name or address, without a scheme"),
        ("log: {level: LOUD}\n", "FILE:1:14: log.level: must be one of DEBUG, INFO, WARNING, ERROR, not 'LOUD'"),
        ("model: {base_url: 'ftp://x'}\n", "FILE:1:19: model.base_url: must be an address like https://host/v1"),
        ("modle: {}\n", "FILE:1:1: unknown section 'modle'; did you mean model?"),
        ("mode: {provider: offline}\n", "FILE:1:1: unknown section 'mode'; did you mean model?"),
        ("deny: []\n", "FILE:1:1: unknown section 'deny'; did you mean approvals.deny?"),
        ("port: 80\n", "FILE:1:1: unknown section 'port'; did you mean api.port?"),
        ("api:\n  prot: 80\n", "FILE:2:3: unknown setting 'api.prot'; did you mean api.port?"),
        ("api:\n  quux: 80\n", "FILE:2:3: unknown setting 'api.quux'"),
        (
            "shutdown: {drain_s: 20}\n",
            "FILE:1:12: shutdown.drain_s (20) must not be greater than shutdown.timeout_s (10)",
        ),
        (
            "model:\n  provider: openai\n",
            "FILE:2:3: model.name must be set when model.provider is openai",
        ),
    ],
)
def test_error_names_its_place(home: Home, text: str | bytes, problem: str) -> None:
    assert problems(home, text) == problem


def test_all_errors_are_reported_together(home: Home) -> None:
    told = problems(home, "api:\n  port: x\n  hots: y\nfoo: 1\n", HERMES_TURNS_MAX_CONCURRENT="0").splitlines()
    assert told[0] == "the configuration has 4 problems:"
    assert [line.split(": ")[0].strip() for line in told[1:]] == [
        "FILE:2:9",
        "FILE:3:3",
        "FILE:4:1",
        "environment variable HERMES_TURNS_MAX_CONCURRENT",
    ]


def test_a_file_that_cannot_be_read_is_a_clear_error(home: Home) -> None:
    home.config_file.mkdir()
    with pytest.raises(ConfigError, match=r"config\.yaml: cannot be read: it is a directory"):
        load_config(home, {})


@pytest.mark.parametrize(
    "text",
    [
        "model: {api_key: sk-canary12345}\n",
        "model: {api_key_env: sk-canary12345}\n",
        "model: {base_url: 'https://me:sk-canary12345@host/v1'}\n",
        "model: {key: sk-canary12345}\n",
        "sk-canary: sk-canary12345\n",
    ],
)
def test_a_key_in_the_wrong_place_is_not_repeated(home: Home, text: str) -> None:
    assert "canary12345" not in problems(home, text)


def test_a_key_in_the_file_is_explained(home: Home) -> None:
    told = problems(home, "model:\n  api_key: sk-1\n")
    assert told.startswith("FILE:2:3: model.api_key: the configuration must not contain a key")
    assert "model.api_key_env" in told
    assert "model.api_key_file" in told


# ---------------------------------------------------------------- mistakes in the environment


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("HERMES_API_PORT", "x", "environment variable HERMES_API_PORT: expected a whole number, found 'x'"),
        ("HERMES_API_PORT", "99999", "environment variable HERMES_API_PORT: must be from 0 to 65535, not 99999"),
        ("HERMES_API_ENABLED", "yes", "environment variable HERMES_API_ENABLED: expected true or false, found 'yes'"),
        (
            "HERMES_SHUTDOWN_DRAIN_S",
            "nan",
            "environment variable HERMES_SHUTDOWN_DRAIN_S: expected a number, found 'nan'",
        ),
        ("HERMES_API_PROT", "1", "unknown environment variable HERMES_API_PROT; did you mean HERMES_API_PORT?"),
        (
            "HERMES_SESION_MAX_LIVE",
            "1",
            "unknown environment variable HERMES_SESION_MAX_LIVE; did you mean HERMES_SESSIONS_MAX_LIVE?",
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(home: Home, variable: str, value: str, problem: str) -> None:
    assert problems(home, "", **{variable: value}) == problem


@pytest.mark.parametrize(
    "variable",
    [
        "HERMES_HOME",
        "HERMES_API_KEY",
        "HERMES_TEST_API_PROT",
        "HERMES_SERVICE_HOST",
        "HERMES_PORT_8642_TCP",
        "HERMES_PORT",
    ],
)
def test_variables_that_are_not_settings_are_left_alone(home: Home, variable: str) -> None:
    assert load_config(home, {variable: "whatever"}) == Config()


def test_the_variable_that_holds_the_models_key_may_have_any_name(home: Home) -> None:
    environ = {"HERMES_MODEL_API_KEY_ENV": "HERMES_MODEL_API_KEY", "HERMES_MODEL_API_KEY": "sk-1234567890"}
    ((source, key),) = load_config(home, environ).model.api_keys(environ)
    assert (source, key.reveal()) == ("HERMES_MODEL_API_KEY", "sk-1234567890")
    assert "must not contain a key" in problems(home, "", HERMES_MODEL_API_KEY="sk-1")


# ---------------------------------------------------------------- the model's key


def test_the_models_key_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    openai = ModelConfig(provider="openai")
    ((_, from_environ),) = openai.api_keys({"OPENAI_API_KEY": " from-environ "})
    ((_, from_file),) = replace(openai, api_key_file=str(file)).api_keys({"OPENAI_API_KEY": "other"})
    assert (from_environ.reveal(), from_file.reveal()) == ("from-environ", "from-file")
    assert replace(openai, api_key_env="").api_keys({}) == ()


def test_several_variables_are_a_pool_of_keys() -> None:
    model = ModelConfig(provider="groq", api_key_env="A,B,C")
    found = model.api_keys({"A": "one", "C": "three"})
    assert [(name, key.reveal()) for name, key in found] == [("A", "one"), ("C", "three")]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ModelConfig(provider="anthropic", name="claude-sonnet-4-5"), (200_000, 3.0)),
        (ModelConfig(provider="anthropic", name="claude-sonnet-4-5-20250929"), (200_000, 3.0)),
        (ModelConfig(provider="openai", name="unheard-of"), (128_000, 0.0)),
        (ModelConfig(provider="openai", name="gpt-4o", context_window=9000, price_input=7.0), (9000, 7.0)),
        (ModelConfig(provider="openai", name="x", prices=("y=1/2", "x=4/0.5/8")), (128_000, 4.0)),
    ],
)
def test_window_and_price_are_configured_or_known(settings: ModelConfig, expected: tuple[int, float]) -> None:
    assert (settings.window, settings.price().input) == expected


def test_missing_key_error_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the environment variable OPENAI_API_KEY"):
        ModelConfig(provider="openai").api_keys({})
    with pytest.raises(ConfigError, match=r"model\.api_key_file: there is no file .*gone"):
        ModelConfig(api_key_file=str(tmp_path / "gone")).api_keys({})


@pytest.mark.parametrize(
    "raw", [b"", b"\n", b"two words", b"two\nlines", b"\xff\xfe", "schlüssel".encode(), b"x" * 70_000]
)
def test_a_key_that_cannot_travel_in_a_header_is_refused(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(raw)
    with pytest.raises(ConfigError, match=r"model\.api_key_file"):
        ModelConfig(api_key_file=str(file)).api_keys({})


# ---------------------------------------------------------------- resets


def test_resets_can_be_set_by_platform_and_kind_of_chat(home: Home) -> None:
    text = (
        "session_reset:\n  mode: daily\n  idle_minutes: 90\n  overrides:\n"
        "    - 'telegram: idle 120 daily at 6'\n    - 'Slack:  idle'\n    - 'group: none'\n"
    )
    book = policy_book(load(home, text).session_reset)
    assert (book.default.mode, book.default.at_hour, book.default.idle_minutes) == ("daily", 4, 90)
    telegram, slack = book.by_platform["telegram"], book.by_platform["slack"]
    assert (telegram.mode, telegram.idle_minutes, telegram.at_hour) == ("both", 120, 6)
    assert (slack.mode, slack.idle_minutes) == ("idle", 90)
    assert book.for_session("irc", "group").mode == "none"
    assert book.for_session("slack", "group").mode == "idle"
    found = load(home, "", HERMES_SESSION_RESET_OVERRIDES="telegram: daily at 6, group: idle 120")
    assert found.session_reset.overrides == ("telegram: daily at 6", "group: idle 120")


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("telegram", "must be like"),
        ("telegram:", "must be like"),
        ("telegram: weekly", "must be like"),
        ("telegram: none daily", "must be like"),
        ("telegram: idle 0", "from 1 to"),
        ("telegram: daily at 24", "from 0 to 23, not 24"),
        ("foo: idle 3", "'foo' is neither a platform (api, cli, "),
    ],
)
def test_invalid_reset_override_is_reported_with_its_line(home: Home, override: str, complaint: str) -> None:
    told = problems(home, f"session_reset:\n  overrides:\n    - '{override}'\n")
    assert "FILE:3:" in told
    assert complaint in told


def test_two_overrides_for_one_place_are_a_mistake_and_both_is_a_word(home: Home) -> None:
    told = problems(home, "session_reset: {overrides: ['cli: idle 1', 'cli: none']}")
    assert "cli is set twice" in told
    book = policy_book(load(home, "session_reset: {overrides: ['cli: both', 'dm: none']}").session_reset)
    assert book.by_platform["cli"].mode == "both"
    assert (book.rule_for("cli", "dm"), book.rule_for("api", "dm"), book.rule_for("api", "x")) == ("cli", "dm", "")


def test_a_bare_off_is_a_word_where_words_are_to_choose_from(home: Home) -> None:
    assert load(home, "approvals: {mode: off}").approvals.mode == "off"
    assert "must be one of none, idle, daily, both, not 'off'" in problems(home, "session_reset: {mode: off}")


def test_a_time_zone_must_be_one(home: Home) -> None:
    assert load(home, "session_reset: {timezone: Europe/Berlin}").session_reset.timezone == "Europe/Berlin"
    for name in ("Mars/Olympus", "../etc/passwd"):
        assert "FILE:1:27: " in problems(home, f"session_reset: {{timezone: {name}}}")


def test_the_systems_time_zone_is_found() -> None:
    assert str(find_zone("", {"TZ": ":Europe/Berlin"})) == "Europe/Berlin"
    assert str(find_zone("Asia/Tokyo", {"TZ": "Europe/Berlin"})) == "Asia/Tokyo"
    assert find_zone("", {}) is not None
    rome = files("tzdata") / "zoneinfo" / "Europe" / "Rome"
    assert str(find_zone("", {"TZ": f":{rome}"})) == "Europe/Rome"
    assert find_zone("", {"TZ": ":/nowhere"}) is UTC


# ---------------------------------------------------------------- reloading


def test_changes_are_split_by_need_of_a_restart(home: Home) -> None:
    new = load(home, "api: {port: 1, cors_origins: ['https://a']}\nlog: {level: ERROR, keep: 1}\nmodel: {name: x}\n")
    applied, restart = Config.reloadable_changes(Config(), new)
    assert applied == ("model.name", "api.cors_origins", "log.level")
    assert restart == ("api.port", "log.keep")
    assert Config.reloadable_changes(new, new) == ((), ())


@pytest.mark.parametrize("name", sorted(RETIRED))
def test_retired_setting_is_ignored_with_a_warning(name: str, home: Home) -> None:
    section, key = name.split(".")
    variable = f"HERMES_{section}_{key}".upper()
    assert load(home, f"{section}: {{{key}: 7}}\n", **{variable: "x"}) == Config()
    home.config_file.write_text(f"{section}: {{{key}: 7}}\n")
    _, sources = explain_config(home, {})
    assert retired_warnings(sources) == [f"{sources[name]}: {name} is no longer a setting and is ignored; remove it"]
