"""Table of programs: which of their options write a file, run a program, delete or send something.

An option is named without its dashes. One letter is a short option, which may stand in a bundle; a longer name may be
shortened where the program allows it.
"""

from __future__ import annotations

from functools import lru_cache

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.syntax import words

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    valued: str = ""  # short options that take a value
    values: frozenset[str] = _NONE  # long options that take a value, beside those below
    writes: frozenset[str] = _NONE  # the value is a file or directory that it writes
    runs: frozenset[str] = _NONE  # the value is a program, a configuration or code that it loads
    deletes: frozenset[str] = _NONE
    sends: frozenset[str] = _NONE  # the value goes to another machine, or decides where everything goes
    flags: frozenset[str] = _NONE  # of the above: those that take no value
    single_dash: bool = False  # long options begin with one dash
    bare_bundle: bool = False  # the first argument is a bundle also without a dash

    @property
    def dangerous(self) -> tuple[str, ...]:
        return _dangerous(self)

    @property
    def long_names(self) -> frozenset[str]:
        return self.values | self.writes | self.runs | self.deletes | self.sends

    @property
    def takes_value(self) -> frozenset[str]:
        return (self.values | self.writes | self.runs | self.sends) - self.flags


@lru_cache(maxsize=256)
def _dangerous(program: Program) -> tuple[str, ...]:
    return tuple(
        sorted(each for each in program.writes | program.runs | program.deletes | program.sends if len(each) > 1)
    )


_TAR = Program(
    valued="fCbXTKNVgIFHL",
    values=words("file directory exclude exclude-from files-from format owner group mode mtime"),
    writes=words("f C g file directory listed-incremental index-file one-top-level transform xform"),
    runs=words(
        "I F P absolute-names use-compress-program to-command checkpoint-action info-script new-volume-script"
        " rsh-command rmt-command"
    ),
    deletes=words("remove-files recursive-unlink"),
    flags=words("one-top-level P absolute-names"),
    bare_bundle=True,
)
_CURL = Program(
    valued="oDcTdFKHbuxXAemrUEtzCYyQPw",
    values=words(
        "request header user-agent max-time connect-timeout url cacert cert range retry write-out max-redirs"
    ),
    writes=words(
        "o D c output output-dir dump-header cookie-jar trace trace-ascii stderr libcurl etag-save hsts alt-svc"
    ),
    runs=words("K E config engine cert key netrc-file"),
    sends=words(
        "T upload-file F form x proxy socks5 socks4 socks4a socks5-hostname preproxy connect-to resolve interface"
        " mail-from unix-socket abstract-unix-socket doh-url dns-servers"
    ),
)
_WGET = Program(
    valued="OoaPeiUtTwQBADRIX",
    values=words("header user-agent tries timeout"),
    writes=words(
        "O o a P output-document output-file append-output directory-prefix save-cookies warc-file rejected-log"
    ),
    runs=words("e execute config use-askpass"),
    sends=words("post-file body-file load-cookies proxy-user"),
)
_GCC = Program(
    valued="oIBLlDUxMTj",
    values=words("include isystem idirafter MF MT"),
    writes=words("o MF dumpdir dumpbase aux-info"),
    runs=words("B wrapper specs fplugin load plugin fuse-ld Xlinker fpass-plugin"),
    single_dash=True,
)
_SSH = Program(
    valued="bcDEeFIiJLlmOopQRSWw",
    runs=words("F I"),
    writes=words("E"),
    sends=words("R D w W"),
)
_GDB = Program(
    valued="xpcsd",
    runs=words("x ex eval-command command iex ix init-command init-eval-command"),
    values=words("cd symbols core pid"),
    single_dash=True,
)
_VIM = Program(
    valued="cSuUTWwtpi",
    runs=words("c S u U cmd startuptime luafile"),
    writes=words("W w i startuptime"),
)
_PIP = Program(
    valued="ricte",
    values=words("requirement constraint"),
    writes=words("t d target prefix root dest wheel-dir log report cache-dir src"),
    runs=words("user index-url extra-index-url find-links trusted-host python global-option config-settings f"),
    flags=words("user"),
)
_ARCHIVER = Program(valued="owt", writes=words("o w"), deletes=words("sdel"))
_COPIER = Program(valued="tSZmog", writes=words("t target-directory"), values=words("suffix mode owner group"))

PROGRAMS: dict[str, Program] = {
    "tar": _TAR,
    "gtar": _TAR,
    "bsdtar": _TAR,
    "curl": _CURL,
    "wget": _WGET,
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "tcc"), _GCC),
    "ssh": _SSH,
    "autossh": _SSH,
    "scp": Program(valued="cFiJloPSDX", runs=words("S F D")),
    "sftp": Program(valued="BbcDFiJloPRSsX", runs=words("S F D b s")),
    "ssh-keygen": Program(valued="fNCtbmOIzVDYsnE", writes=words("f"), runs=words("D")),
    "ssh-add": Program(valued="tsSe", runs=words("s S")),
    "gdb": _GDB,
    "lldb": Program(
        valued="osSOKpP",
        runs=words("o s S O K one-line source source-before-file one-line-before-file attach-name"),
    ),
    **dict.fromkeys(("vim", "vi", "nvim", "view", "gvim", "vimdiff", "ex", "rvim"), _VIM),
    "emacs": Program(valued="lfq", runs=words("l f eval load funcall execute script batch"), flags=words("batch")),
    "nano": Program(valued="ofCT", writes=words("o C"), runs=words("f rcfile")),
    "less": Program(
        valued="okOtbjpPxT", writes=words("o O log-file LOG-FILE"), runs=words("k lesskey-file lesskey-src")
    ),
    "man": Program(valued="PHlCMLSser", runs=words("P H l C pager html config-file local-file"), flags=words("html")),
    "groff": Program(valued="TmKf", runs=words("U"), flags=words("U")),
    "nroff": Program(valued="Tm", runs=words("U")),
    "zip": Program(
        valued="OTTbntixPs",
        writes=words("O b output-file out temp-path"),
        runs=words("TT unzip-command"),
        deletes=words("m move"),
    ),
    "unzip": Program(valued="dxP", writes=words("d"), runs=frozenset({":"})),
    **dict.fromkeys(("unrar", "7z", "7za", "7zr", "rar"), _ARCHIVER),
    **dict.fromkeys(("cp", "mv", "ln", "install", "gcp", "gmv"), _COPIER),
    "ar": Program(writes=words("output")),
    "rsync": Program(
        valued="efTBM",
        runs=words("e rsh rsync-path daemon config"),
        writes=words("log-file backup-dir partial-dir temp-dir write-batch only-write-batch"),
        deletes=words("delete del delete-after delete-before remove-source-files"),
        sends=words("password-file files-from sockopts"),
        flags=words("daemon"),
    ),
    "sort": Program(valued="oTStk", writes=words("o output temporary-directory"), runs=words("compress-program")),
    "shuf": Program(valued="oni", writes=words("o output")),
    "split": Program(valued="abClnt", runs=words("filter")),
    "csplit": Program(valued="fbn", writes=words("f prefix")),
    "patch": Program(valued="oidprBzYD", writes=words("o r d B output reject-file directory")),
    "iconv": Program(valued="oft", writes=words("o output")),
    "strace": Program(valued="aeoOpPsSuEX", writes=words("o output"), runs=words("E env")),
    "ltrace": Program(valued="aAeFlnopsuxw", writes=words("o output"), runs=words("F config")),
    "perf": Program(valued="oispe", writes=words("o output"), runs=words("s script")),
    "valgrind": Program(writes=words("log-file xml-file"), runs=words("db-command")),
    "time": Program(valued="fo", writes=words("o output")),
    "script": Program(
        valued="cIOBTmEo", writes=words("I O B T log-in log-out log-io log-timing"), runs=words("c command")
    ),
    "openssl": Program(
        writes=words("out keyout CAout serial writerand outform_file"),
        runs=words("engine provider provider-path config pre_serv"),
        values=words("in inkey pass k K iv"),
        single_dash=True,
    ),
    "gpg": Program(
        valued="oru",
        writes=words("o output homedir"),
        runs=words("photo-viewer exec-path export-secret-keys export-secret-subkeys d decrypt"),
        sends=words("keyserver send-keys"),
    ),
    "git": Program(
        valued="oCcOmSJuxnFW",
        values=words("message author date"),
        writes=words("o output output-directory separate-git-dir work-tree file f"),
        runs=words(
            "c O x config-env exec-path git-dir upload-pack receive-pack exec extcmd open-files-in-pager template"
            " sendmail-cmd httpd tree-filter index-filter msg-filter env-filter commit-filter super-prefix"
        ),
    ),
    "make": Program(
        valued="CfIoWEj",
        values=words("directory jobs"),
        runs=words("f E I eval file makefile include-dir"),
    ),
    "ninja": Program(valued="Cfjkl", runs=words("f")),
    "cmake": Program(
        valued="SBGDPUCTA",
        writes=words("install-prefix"),
        runs=words("P E C toolchain preset"),
        values=words("build"),
    ),
    "meson": Program(runs=words("native-file cross-file")),
    "sqlite3": Program(
        values=words("separator nullvalue newline"), runs=words("init cmd vfs vfstrace zip"), single_dash=True
    ),
    "psql": Program(valued="cfovdhpUL", writes=words("o L output log-file"), runs=words("f file")),
    "rg": Program(valued="efgtTmABCjrM", runs=words("pre hostname-bin")),
    "gawk": Program(
        valued="vfFlieo", runs=words("l load"), writes=words("o p d pretty-print dump-variables profile")
    ),
    "inotifywait": Program(valued="oet", writes=words("o outfile")),
    "tcpdump": Program(valued="zwWCGrinsc", runs=words("z"), writes=words("w")),
    "dmesg": Program(runs=words("pager")),
    "aria2c": Program(
        valued="dojlsx",
        writes=words("d o l dir out log"),
        runs=words("on-download-complete on-download-start on-download-stop on-download-error conf-path"),
    ),
    "lynx": Program(runs=words("cfg cmd_script lss"), single_dash=True),
    "pandoc": Program(
        valued="otfFLHBA", writes=words("o output"), runs=words("F L filter lua-filter defaults pdf-engine")
    ),
    **dict.fromkeys(
        ("latex", "pdflatex", "xelatex", "lualatex", "tex"),
        Program(
            runs=words("shell-escape enable-write18"),
            flags=words("shell-escape enable-write18"),
            single_dash=True,
            writes=words("output-directory"),
        ),
    ),
    "gnuplot": Program(valued="e", runs=words("e")),
    "octave": Program(runs=words("eval")),
    "dc": Program(valued="ef", runs=words("e expression")),
    "perl": Program(valued="MmIdx", runs=words("M m I d x")),
    "ruby": Program(valued="rIE", runs=words("r I")),
    "lua": Program(valued="l", runs=words("l")),
    "php": Program(valued="dcSz", runs=words("d c S z")),
    **dict.fromkeys(
        ("node", "nodejs"),
        Program(
            valued="r",
            runs=words(
                "r require import loader experimental-loader inspect inspect-brk env-file openssl-config"
                " eval-file snapshot-blob"
            ),
            flags=words("inspect inspect-brk"),
        ),
    ),
    "java": Program(
        runs=words("javaagent agentlib agentpath jar cp classpath XX:OnError"),
        flags=words("javaagent"),
        single_dash=True,
    ),
    **dict.fromkeys(("pip", "pip3"), _PIP),
    "uv": Program(
        writes=words("target prefix cache-dir"),
        runs=words("with with-editable index-url default-index extra-index-url index"),
    ),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn"),
        Program(
            valued="Cgc",
            writes=words("prefix dir"),
            runs=words("script-shell registry global g editor userconfig globalconfig call node-options location"),
            flags=words("global g"),
        ),
    ),
    "cargo": Program(runs=words("config target-dir")),
    "go": Program(
        valued="Co",
        writes=words("o"),
        runs=words("toolexec exec vettool overlay modfile"),
        single_dash=True,
    ),
    "pytest": Program(valued="pckmorn", runs=words("p c rootdir confcutdir config-file"), writes=words("basetemp")),
    "coverage": Program(runs=words("rcfile"), writes=words("data-file")),
    "logrotate": Program(valued="sl", writes=words("s l state")),
    "systemctl": Program(valued="HMps", runs=words("H M host machine root")),
    "kubectl": Program(runs=words("kubeconfig")),
    "terraform": Program(runs=words("chdir"), single_dash=True),
    "jq": Program(valued="Lf", runs=words("L")),
    "apt-get": Program(valued="oct", runs=words("o c option config-file")),
    "apt": Program(valued="oct", runs=words("o c option config-file")),
    "dpkg": Program(valued="iD", runs=words("i install unpack configure root admindir")),
    "rpm": Program(valued="iUF", runs=words("i U F install upgrade root")),
    "crontab": Program(valued="u", runs=words("e r"), flags=words("e r")),
    "logger": Program(valued="nPfptiT", sends=words("n P server port")),
    "dig": Program(valued="pbkfqtcxy", runs=words("f")),
    "date": Program(valued="dfrsI", runs=words("s set")),
    "file": Program(valued="mfFPe", runs=words("m f C magic-file files-from")),
}
