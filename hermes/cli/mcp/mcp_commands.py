"""`hermes mcp`: add, list, test, remove and log in to MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, path_of
from hermes.cli.output import duration, one_line, print_json, print_table, print_text, shortened
from hermes.cli.parser import Commands, seconds
from hermes.domain.errors import BadInputError, HermesError, NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from hermes.cli.client import AdminClient

_TEST_S = 180.0
_TRUST = ("ask", "read_only", "full")


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "mcp",
        _list,
        "Connect MCP servers, whose tools the agent can use. Or serve Hermes to other programs over MCP.",
        examples="  hermes mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv/files\n"
        "  hermes mcp add docs --url https://mcp.example.com/mcp --auth oauth\n"
        "  hermes mcp list\n  hermes mcp test files\n  hermes mcp serve",
        json=True,
    )
    actions = Commands(group, required=False)
    actions.add("list", _list, "List the configured servers, their state and tools. Starts none.", json=True)
    _add_add(actions)
    for verb, run, about in (
        ("show", _show, "Show a server and its tools."),
        ("test", _test, "Start a server and list its tools."),
        ("approve", _approve, "Accept new and changed tools of a server."),
        ("stop", _stop, "Stop a server and forget its failures. The next use starts it again."),
        ("remove", _remove, "Remove a server from the configuration."),
        ("login", _login, "Log in to a server with OAuth, in a browser."),
    ):
        parser = actions.add(verb, run, about, json=True)
        parser.add_argument("name", metavar="NAME", help="name of the server")
        if verb == "login":
            parser.add_argument("--timeout", type=seconds, default=300.0, metavar="S", help="time for the login")
    actions.add("questions", _questions, "List the open questions of servers.", json=True)
    answer = actions.add("answer", _answer, "Answer a question of a server.", json=True)
    answer.add_argument("id", metavar="ID", help="id of the question")
    answer.add_argument("text", nargs="*", metavar="TEXT", help="VALUE, or NAME=VALUE; NAME=VALUE")
    answer.add_argument("--decline", action="store_true", help="refuse to answer")
    actions.add("serve", _serve, "Serve this Hermes to an MCP client over standard input and output.")


def _add_add(actions: Commands) -> None:
    add = actions.add(
        "add",
        _add,
        "Add a server to the configuration: a program, or a URL. A running daemon takes it over.",
        examples="  hermes mcp add git --env GIT_AUTHOR_NAME=Hermes -- uvx mcp-server-git\n"
        "  hermes mcp add tracker --url https://tracker.example/mcp --header 'Authorization=Bearer ${TRACKER_TOKEN}'",
        json=True,
    )
    add.add_argument("name", metavar="NAME", help="name, as in mcp__NAME__TOOL")
    add.add_argument("command", nargs="*", metavar="COMMAND", help="program and arguments, after --")
    add.add_argument("--url", default="", metavar="URL", help="address of a server on the network")
    add.add_argument("--transport", choices=("stdio", "http", "sse"), help="default: http for a URL")
    add.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="variable of the program")
    add.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="HTTP header")
    add.add_argument("--cwd", default="", metavar="DIR", help="working directory (default: your home)")
    add.add_argument("--auth", choices=("oauth",), help="log in with `hermes mcp login`")
    add.add_argument("--trust", choices=_TRUST, help="whether calls need approval (default: ask)")
    add.add_argument("--include", action="append", default=[], metavar="TOOL", help="only these tools; * is allowed")
    add.add_argument("--exclude", action="append", default=[], metavar="TOOL", help="all tools but these")
    add.add_argument("--timeout", type=seconds, metavar="S", help="time for a call (default: 300)")
    add.add_argument("--connect-timeout", type=seconds, metavar="S", help="time for a start (default: 60)")


# ------------------------------------------------------------ the daemon


@asks_daemon
def _list(_args: argparse.Namespace, client: AdminClient) -> tuple[Any, Any]:
    found = client.get("/mcp/servers")
    return found, lambda: _print_servers(found["servers"])


def _print_servers(servers: Sequence[Mapping[str, Any]]) -> None:
    if not servers:
        print_text("No MCP server is configured; `hermes mcp add NAME -- COMMAND` adds one.")
        return
    rows = [
        [
            row["name"],
            row["transport"],
            row["state"],
            str(row["tool_count"]) if row["is_learned"] else "?",
            row["trust"],
            shortened(one_line(row["command"] or row["address"]), 50),
            one_line(row["problem"]) or "-",
        ]
        for row in servers
    ]
    columns = ["NAME", "TRANSPORT", "STATE", "TOOLS", "TRUST", "SERVER", "PROBLEM"]
    print_table(columns, rows, drop=("SERVER", "TRUST"), alarm="PROBLEM", numbers=("TOOLS",))
    for row in servers:
        if row["waiting_for_approval"]:
            print_text(
                f"{row['name']}: {row['waiting_for_approval']} new or changed tools are withheld; "
                f"`hermes mcp show {row['name']}` shows them, `hermes mcp approve {row['name']}` accepts them."
            )
        if row["retry_in_s"] > 0:
            print_text(f"{row['name']}: the next try is possible in {duration(row['retry_in_s'])}.")


@asks_daemon
def _show(args: argparse.Namespace, client: AdminClient) -> tuple[Any, Any]:
    found = client.get(path_of("mcp", "servers", args.name))
    return found, lambda: _print_server(found)


@asks_daemon
def _test(args: argparse.Namespace, client: AdminClient) -> tuple[Any, Any]:
    found = client.post(path_of("mcp", "servers", args.name, "test"), timeout_s=_TEST_S)
    return found, lambda: _print_server(found)


def _print_server(found: Mapping[str, Any]) -> None:
    _print_servers([found])
    if found["version"]:
        print_text(f"Server: {one_line(found['version'])}")
    rows = [
        [
            tool["name"],
            tool["standing"],
            "asks" if tool["asks"] else "runs",
            shortened(one_line(tool["description"]), 80),
        ]
        for tool in found["tools"]
    ]
    if rows:
        print()
        print_table(["TOOL", "STATE", "CALLS", "DESCRIPTION"], rows, drop=("DESCRIPTION",))
    for tool in found["tools"]:
        if tool["standing"] != "approved":
            why = f" {tool['finding']}." if tool["finding"] else ""
            print_text(f"{tool['remote']} ({tool['standing']}):{why} {one_line(tool['description'])}")


@asks_daemon
def _approve(args: argparse.Namespace, client: AdminClient) -> tuple[Any, Any]:
    found = client.post(path_of("mcp", "servers", args.name, "approve"))
    names = ", ".join(map(one_line, found["approved"]))
    return found, f"Accepted: {names}." if names else "Nothing waited for approval."


@asks_daemon
def _stop(args: argparse.Namespace, client: AdminClient) -> tuple[Any, Any]:
    found = client.post(path_of("mcp", "servers", args.name, "stop"))
    return found, f"{args.name} is stopped."


@asks_daemon
def _questions(_args: argparse.Namespace, client: AdminClient) -> tuple[Any, Any]:
    found = client.get("/mcp/questions")
    rows = [
        [each["id"], each["server"], each["session_id"], one_line(each["message"])] for each in found["questions"]
    ]
    if not rows:
        return found, "No MCP server waits for an answer."
    return found, lambda: print_table(["ID", "SERVER", "SESSION", "QUESTION"], rows, drop=("SESSION",))


@asks_daemon
def _answer(args: argparse.Namespace, client: AdminClient) -> tuple[Any, Any]:
    text = " ".join(args.text)
    if not text and not args.decline:
        raise BadInputError("give the answer, or --decline")
    found = client.post(path_of("mcp", "questions", args.id), {"answer": None if args.decline else text})
    waited = "The server has it." if found["call_waited"] else "The call that needed it has ended."
    return found, f"Your answer is stored. {waited}"


# ------------------------------------------------------------ the configuration


def _add(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.loader import load_config
    from hermes.config.mcp.mcp_servers import parse_server
    from hermes.config.revision import revise

    home = Home.from_environ(environ)
    if any(each.name == args.name for each in load_config(home, environ).mcp_servers):
        raise HermesError(f"there is an MCP server {args.name} already; `hermes mcp remove {args.name}` removes it")
    given = _definition(args)
    _, problems = parse_server(args.name, given)
    if problems:
        raise HermesError("; ".join(problems))
    from hermes.config.editor import with_entry

    revise(home, environ, lambda text: with_entry(text, "mcp_servers", args.name, given))
    return _saved(args, environ, "added", f"`hermes mcp test {args.name}` starts it and lists its tools.")


def _definition(args: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if args.command:
        given["command"], given["args"] = args.command[0], args.command[1:]
    for key in ("url", "cwd", "transport", "auth", "trust", "include", "exclude", "timeout", "connect_timeout"):
        if value := getattr(args, key):
            given[key] = value
    for key, pairs in (("env", args.env), ("headers", args.header)):
        if pairs:
            given[key] = dict(map(_pair, pairs))
    return given


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise HermesError("--env and --header take NAME=VALUE")
    return name, value


def _remove(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.loader import load_config
    from hermes.config.revision import unset_setting
    from hermes.mcp.token_file import TokenFile

    home = Home.from_environ(environ)
    if all(each.name != args.name for each in load_config(home, environ).mcp_servers):
        raise HermesError(f"there is no MCP server {args.name} in {home.config_file}")
    unset_setting(home, f"mcp_servers.{args.name}", environ)
    TokenFile(home.data_dir).remove(args.name)
    return _saved(args, environ, "removed", "")


def _saved(args: argparse.Namespace, environ: Mapping[str, str], what: str, hint: str) -> int:
    """Report a changed configuration, after a running daemon has read it."""
    from hermes.cli.client import connect

    try:
        connect(environ).post("/reload")
        applied, more = True, "The running daemon uses the new configuration."
    except NotRunningError:
        applied, more = False, "It takes effect when the daemon starts."
    if args.json:
        print_json({"name": args.name, what: True, "applied": applied})
    else:
        print_text(" ".join(filter(None, (f"{args.name} was {what}.", more, hint))))
    return 0


def _login(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.mcp.login import log_in

    log_in(args.name, environ, within_s=args.timeout)
    if args.json:
        print_json({"name": args.name, "logged_in": True})
    else:
        print_text(f"Logged in to {args.name}. Its tokens are stored, and the daemon uses them.")
    return 0


def _serve(_args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.mcp.serve import serve

    return serve(environ)
