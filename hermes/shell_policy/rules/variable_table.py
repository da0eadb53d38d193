"""Table of environment variables that decide what other programs run, load, read or connect to."""

from __future__ import annotations

import re

_DANGEROUS = re.compile(
    r"LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|MALLOC_TRACE|NLSPATH|LOCPATH|HOSTALIASES|RES_OPTIONS|TERMINFO(?:_DIRS)?|TERMCAP"
    r"|BASH_.*|ENV|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|PROMPT_DIRTRIM|IFS_|ZDOTDIR|FPATH|CDPATH|INPUTRC|PATH|HOME|SHELL"
    r"|XDG_(?:CONFIG|DATA|RUNTIME)_\w+|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|SSH_\w+|SUDO_ASKPASS|TMUX|HERMES_\w+"
    r"|PYTHON(?!UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|HASHSEED|FAULTHANDLER|OPTIMIZE|NOUSERSITE|SAFEPATH|DEVMODE"
    r"|TRACEMALLOC|ASYNCIODEBUG).*|VIRTUAL_ENV_\w+|PERL5?(?:OPT|LIB|DB|_.*)|PERL5.*|RUBY(?:OPT|LIB|SHELL)|GEM_(?:HOME|PATH)"
    r"|NODE_(?:OPTIONS|PATH|REPL_.*|EXTRA_CA_CERTS|TLS_.*)|(?:_|JDK_)?JAVA_(?:TOOL_)?OPTIONS|CLASSPATH|LUA_(?:PATH|CPATH|INIT).*"
    r"|PHP(?:RC|_INI_SCAN_DIR)|GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT|MERGE_AUTOEDIT|OPTIONAL_LOCKS|CEILING_).*"
    r"|(?:GIT_|MAN|SYSTEMD_|DELTA_|BAT_)?PAGER|(?:GIT_|SUDO_|KUBE_|SYSTEMD_|SEQUENCE_|HG)?EDITOR|VISUAL|BROWSER|LESS\w+"
    r"|TAR_OPTIONS|RSYNC_\w+|CVS_RSH|MAKEFLAGS|MAKEFILES|GNUMAKEFLAGS|MFLAGS|GCC_EXEC_PREFIX|COMPILER_PATH|LIBRARY_PATH"
    r"|CC|CXX|LD|AR|AS|CPP|FC|RANLIB|STRIP|CMAKE_\w+|(?:CARGO_BUILD_)?RUSTC(?:_WORKSPACE)?(?:_WRAPPER)?|RUSTFLAGS|CARGO_.*"
    r"|GO(?:FLAGS|ROOT|PROXY|NOSUMDB|NOSUMCHECK|PRIVATE|TOOLCHAIN|ENV)|(?i:npm_config_.*|yarn_.*)|PIP_.*|UV_(?:INDEX|DEFAULT|EXTRA|CONFIG|PYTHON).*"
    r"|OPENSSL_\w+|SSL_CERT_\w+|CURL_(?:HOME|CA_BUNDLE|SSL_BACKEND)|REQUESTS_CA_BUNDLE|WGETRC|VIM(?:INIT|RUNTIME)?|EXINIT|MYVIMRC"
    r"|DOCKER_\w+|CONTAINER_HOST|KUBECONFIG|AWS_\w+|(?i:(?:https?|all|ftp|no)_proxy)|PYTEST_(?:ADDOPTS|PLUGINS)|COVERAGE_PROCESS_START"
    r"|GNUPGHOME|GPG_\w+|KRB5\w+|ODBC\w+|PG(?:SERVICEFILE|PASSFILE)|MYSQL_\w+|TCL\w+PATH|R_(?:PROFILE|ENVIRON|LIBS)\w*|JULIA_\w+"
)
_TOOLS = r"(?:cat|less|more|true|false|:|vim?|nvim|nano|emacs|code --wait|firefox|less -\w+|)"
# Values that people really give, and that make nothing run.
_HARMLESS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(name), re.compile(value))
    for name, value in (
        (r"(?:\w*PAGER)|(?:\w*EDITOR)|VISUAL|BROWSER", _TOOLS),
        (r"PYTHONPATH", r"(?:\./?)?(?:[\w-][\w.-]*(?:/[\w-][\w.-]*)*/?)?(?::(?:\.|[\w-][\w./-]*))*(?<!\.\.)"),
        (r"PYTHONWARNINGS", r"(?:default|ignore|error|always|once|module)(?:::\w*Warning)?"),
        (
            r"NODE_OPTIONS",
            r"(?:--(?:max[\w-]+=\d+|no-warnings|enable-source-maps|trace-\w+|experimental-vm-modules)\s*)+",
        ),
        (r"MAKEFLAGS|GNUMAKEFLAGS", r"-?j?\d*|-s|--no-print-directory"),
        (r"CC|CXX|LD|AR|AS|CPP|FC", r"(?:ccache )?(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+|ld|ar|as|gfortran)(?:-\d+)?"),
        (r"GOFLAGS", r"(?:-mod=\w+|-v|-race|-count=\d+|\s)*"),
        (r"GOPRIVATE|NO_PROXY|no_proxy", r"[\w.,*/-]*"),
        (r"RUSTFLAGS", r"(?:-[DAW] ?[\w-]+|-C (?:opt-level|debuginfo|target-cpu)=\w+|\s)*"),
        (
            r"CARGO_(?:TERM_\w+|INCREMENTAL|BUILD_JOBS)|AWS_(?:DEFAULT_)?REGION|AWS_PROFILE|DOCKER_BUILDKIT",
            r"[\w.-]*",
        ),
        (r"PIP_(?:NO_\w+|DISABLE_\w+|QUIET|VERBOSE|DEFAULT_TIMEOUT)", r"\w*"),
        (r"(?:npm|NPM)_(?:config|CONFIG)_(?:loglevel|LOGLEVEL|audit|fund|yes|color)", r"\w*"),
        (r"CMAKE_BUILD_(?:TYPE|PARALLEL_LEVEL)|CMAKE_EXPORT_COMPILE_COMMANDS", r"\w*"),
        (r"PS[0-4]", r"[^$`]*"),
        (r"DISPLAY", r":\d+"),
    )
)
# Variables of a makefile that hold a program.
_MAKE_RUNS = re.compile(
    r"(?:\.?SHELL(?:FLAGS)?|\.SHELLFLAGS|MAKE|MAKEFLAGS|MFLAGS|CC|CXX|LD|AR|AS|CPP|FC|RM|CP|MV|INSTALL|RANLIB|STRIP|LEX|YACC"
    r"|PYTHON|PYTHON3|NODE|GO|CARGO|PERL|SED|AWK|[A-Z_]*(?:CMD|COMMAND|TOOL|BIN|EXEC|RUNNER|WRAPPER|LAUNCHER))"
)


def decides_what_runs(name: str, value: str | None) -> bool:
    """Return whether a variable, set to this value, may make programs run or trust something else.

    A value of None is one that is not known.
    """
    name = name.removesuffix("+")
    if not (_DANGEROUS.fullmatch(name) or name.endswith("%%")):
        return False
    if value is None:
        return True
    return not any(named.fullmatch(name) and harmless.fullmatch(value) for named, harmless in _HARMLESS)


def is_makefile_program(name: str, value: str) -> bool:
    """Return whether a variable given to `make` replaces a program, and not by one that builds use."""
    if not _MAKE_RUNS.fullmatch(name.rstrip(":?+!")):
        return False
    return not any(named.fullmatch(name) and harmless.fullmatch(value) for named, harmless in _HARMLESS)
