"""Tables of programs that run other commands: their options, and which options contain a command."""

from __future__ import annotations

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.syntax import words
from hermes.shell_policy.bash.text_table import program_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """Options of a program that runs the rest of its arguments."""

    valued: str = ""  # short options that take a value
    flags: str = ""  # short options without a value
    long_valued: tuple[str, ...] = ()
    long_flags: tuple[str, ...] = ()
    positional: int = 0  # arguments before the command
    assignments: bool = False  # variables may be set before the command
    joined: bool = False  # the arguments are joined to a text for a shell


# The fields of an entry are those of `Wrapper`.
_WRAPPERS = """
sudo; valued ugpCrtTUDRh; flags AbEHiKklNnPSsVvB; long_valued user group prompt chdir chroot host role type
  command-timeout; long_flags preserve-env login shell non-interactive stdin background set-home askpass;
  assignments
doas; valued uCa; flags nsL
pkexec; long_valued user; long_flags disable-internal-agent keep-cwd
nohup builtin busybox toybox eatmydata fakechroot nocache chronic gnohup i386 x86_64 fakeroot catchsegv
  dbus-run-session torsocks torify valgrind linux32 linux64 rlwrap
setsid; flags cfw; long_flags ctty fork wait
nice; valued n; flags 0123456789; long_valued adjustment
ionice; valued cnpPu; flags t; long_valued class classdata; long_flags ignore
timeout; valued sk; flags v; long_valued signal kill-after; long_flags foreground preserve-status verbose;
  positional 1
gtimeout; valued sk; flags v; positional 1
stdbuf; valued ioe; long_valued input output error
time; valued fo; flags pvaqV; long_valued format output; long_flags portability verbose
exec; valued a; flags cl
chroot; long_valued userspec groups; long_flags skip-chdir; positional 1
chrt; flags abdfiormv; positional 1
taskset; flags ac; long_flags all-tasks cpu-list; positional 1
choom; valued np; long_valued adjust pid
uclampset; valued mMp; flags asR
dumb-init; valued r; flags cv
tini; valued pe; flags sgvw
catatonit; flags gP
chpst; valued ubUe/nlLmdofprtc; flags vPV012
envdir pipenv poetry; positional 1
setlock; flags nNxX; positional 1
softlimit; valued amdslfcor
systemd-inhibit; long_valued what who why mode
systemd-cat; valued tp
pdsh; valued wxlf; joined
ifne; flags n
trickle; valued dutl; flags sv
gtime; valued fo; flags pvaq
gnice; valued n
gstdbuf; valued ioe
flock; valued wE; flags esxnouF; long_valued timeout; long_flags nonblock; positional 1
sshpass; valued pfdP; flags ev
unbuffer; flags p
faketime; flags f; positional 1
proxychains proxychains4; valued f; flags q
caffeinate; valued tw; flags dimsu
strace; valued aeoOpPsSuEX; flags cCdfFhikqrtTvVwxyYZzD
ltrace; valued aAeFlnopsuxw; flags bcCfhirStTV
watch; valued n; flags bcdegptwx; long_valued interval; long_flags color differences beep errexit no-title exec
  precise; joined
at; positional 999
setarch; flags BFILRSTXZ3v; positional 1
command; flags p
env; valued uC; flags i0v; long_valued unset chdir; long_flags ignore-environment null debug; assignments
xargs gxargs; valued adEILnPs; flags 0eilprtxo; long_valued arg-file delimiter max-lines max-args max-procs
  max-chars replace; long_flags null no-run-if-empty verbose interactive exit open-tty
"""
# Options of other programs whose value is a shell command.
_RUNS_VALUE = """
tar; --checkpoint-action=exec --to-command -I --use-compress-program -F --info-script --rsh-command
rsync; -e --rsh --rsync-path
scp sftp; -S
split; --filter
sort; --compress-program
man; -P --pager
tcpdump; -z
zip; -TT --unzip-command
script flock; -c --command
su runuser; -c --command --session-command
xterm; -e
gnome-terminal; -e --command
make gmake; --eval -E
wget; --use-askpass
git; --upload-pack --receive-pack --exec -x --extcmd --open-files-in-pager -O
hyperfine; --prepare -p --setup --cleanup
dmesg; --pager
"""


def _wrapper(fields: dict[str, tuple[str, ...]]) -> Wrapper:
    return Wrapper(
        valued="".join(fields.get("valued", ())),
        flags="".join(fields.get("flags", ())),
        long_valued=fields.get("long_valued", ()),
        long_flags=fields.get("long_flags", ()),
        positional=int("".join(fields.get("positional", ("0",)))),
        assignments="assignments" in fields,
        joined="joined" in fields,
    )


WRAPPERS = {name: _wrapper(fields) for name, fields in program_fields(_WRAPPERS)}
RUNS_VALUE = {
    name: (option, *more) for name, fields in program_fields(_RUNS_VALUE) for option, more in fields.items()
}
# Programs that run a command in a project's environment.
PROJECT_RUNNERS = words("uv poetry pipenv conda mamba hatch pdm direnv dotenv nix-shell nix")
# Programs whose command may begin at any argument.
RUN_SOMEHOW = words(
    "tmux screen hyperfine entr expect systemd-run nsenter unshare bwrap firejail prlimit numactl cpulimit"
    " start-stop-daemon ssh-agent xvfb-run gdb perf script dtach runcon capsh setpriv gosu su-exec s6-setuidgid"
    " kubectl oc podman docker lxc vagrant adb npx bunx uvx pipx doit xdg-open coproc ld.so ld-linux-x86-64.so.2"
    " ld-linux.so.2 ld-musl-x86_64.so.1"
)
