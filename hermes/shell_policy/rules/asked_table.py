"""Table of programs and verbs that need approval, whatever their options."""

from __future__ import annotations

from hermes.shell_policy.bash.syntax import words

# Rule, reason, programs.
PROGRAMS_ASKED: tuple[tuple[str, str, frozenset[str]], ...] = (
    (
        "superuser",
        "runs as another user",
        words("sudo su doas pkexec runuser sudoedit run0 gosu su-exec visudo vipw"),
    ),
    (
        "remote-code",
        "downloads a program and runs it",
        words("npx bunx uvx pipx corepack pnpx dlx degit cookiecutter copier"),
    ),
    (
        "detached-program",
        "starts a program outside this conversation",
        words("systemd-run daemonize start-stop-daemon"),
    ),
    (
        "detached-program",
        "opens a file with its default program",
        words("xdg-open gio open x-www-browser"),
    ),
    (
        "message-bus",
        "controls other programs of this user",
        words("dbus-send gdbus busctl qdbus dbus-monitor"),
    ),
    (
        "namespace",
        "enters or creates a namespace or mount",
        words(
            "nsenter unshare chroot pivot_root mount umount fusermount fusermount3 sshfs bwrap firejail setpriv capsh"
            " buildah toolbox distrobox runc crun"
        ),
    ),
    (
        "data-upload",
        "sends data over the network",
        words(
            "nc ncat netcat nc.openbsd nc.traditional socat telnet ftp tftp lftp sftp mail mailx sendmail mutt"
            " msmtp swaks websocat wscat smbclient finger whois rclone s3cmd croc wormhole magic-wormhole transfer"
            " bore mosh rsh rlogin ldapsearch"
        ),
    ),
    (
        "network-shell",
        "opens this machine to the network",
        words("ngrok cloudflared localtunnel lt chisel frpc telnetd sshd ttyd gotty wetty httpd inetd"),
    ),
    (
        "process-attach",
        "inspects or changes a running process",
        words("gcore reptyr renice py-spy bpftrace nsjail"),
    ),
    (
        "inline-code",
        "runs code in a language that is not checked",
        words("expect osascript emacs m4 dc julia guile tclsh jshell"),
    ),
    ("inline-code", "runs code in a language that is not checked", words("octave gnuplot rscript groovy lua luajit")),
    (
        "remote-change",
        "changes other machines",
        words("ansible ansible-playbook vagrant salt puppet chef-client fabric fab"),
    ),
    (
        "credential-read",
        "reads credentials, the clipboard or the screen",
        words(
            "secret-tool security keyctl pass gopass op bw lpass aws-vault chamber gnome-keyring-daemon kwallet-query"
            " xclip xsel wl-paste wl-copy pbpaste xdotool ydotool wtype scrot grim import screencapture coredumpctl"
        ),
    ),
    (
        "tool-configuration",
        "changes the settings of the desktop, the network or an editor",
        words("gsettings dconf kwriteconfig5 xdg-mime xdg-settings update-desktop-database nmcli code cursor"),
    ),
    (
        "namespace",
        "runs a program on the host or in a virtual machine",
        words(
            "flatpak-spawn host-spawn machinectl systemd-nspawn qemu-system-x86_64 wsl.exe cmd.exe powershell.exe"
            " distrobox-host-exec incus virsh"
        ),
    ),
    ("outside-write", "may unpack files to any directory", words("cpio pax shar rpm2cpio")),
    ("kill-by-name", "kills processes by name", words("pkill killall skill xkill killall5")),
    ("direnv", "lets a directory run code", words("direnv")),
    ("loads-program", "runs a program indirectly", words("gdb lldb ld.so rlwrap entr dotnet convert jar")),
    ("resource", "uses much disk space or processor time", words("fallocate yes stress stress-ng")),
    ("recursive-delete", "deletes old files", words("tmpreaper tmpwatch logrotate")),
    ("network-shell", "sends keys or configuration to another machine", words("ssh-copy-id")),
)

# Verbs: the first words of a command that are not options. `*` is any word, a final `+` one or more words.
VERBS_ASKED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "npm": (
        (
            "exec|x|explore|link|edit|init +|create|publish|unpublish|adduser|login|token|set",
            "remote-code",
            "runs or publishes a package",
        ),
        ("config|c set|edit|delete", "tool-configuration", "changes how npm works permanently"),
    ),
    "pnpm": (
        ("dlx|exec|create|publish|link|setup|env", "remote-code", "runs or publishes a package"),
        ("config set|delete", "tool-configuration", "changes how pnpm works permanently"),
    ),
    "yarn": (
        ("dlx|exec|create|publish|link|global", "remote-code", "runs or publishes a package"),
        ("config set|delete", "tool-configuration", "changes how yarn works permanently"),
    ),
    "bun": (("x|create|publish|link|upgrade", "remote-code", "runs or publishes a package"),),
    "deno": (("eval|install|compile|upgrade|publish|repl", "remote-code", "runs code that is not checked"),),
    "uv": (
        ("tool run|install|upgrade", "remote-code", "installs or runs a package"),
        ("publish|self|python", "remote-code", "changes uv or publishes a package"),
    ),
    "gem": (("install|push|yank|exec|update", "remote-code", "installs a package for this user"),),
    "cargo": (("install|publish|yank|login|owner", "remote-code", "installs or publishes a package"),),
    "go": (("install|get", "remote-code", "installs a package for this user"),),
    "pip": (("config set|edit|unset", "tool-configuration", "changes how pip works permanently"),),
    "gh": (
        ("alias set|import", "tool-configuration", "changes which command gh runs"),
        ("extension install|upgrade|exec", "remote-code", "installs a program"),
        ("gist create|edit", "data-upload", "publishes a file"),
        ("auth *", "credential-read", "shows or changes credentials"),
        ("secret|ssh-key|gpg-key|api *", "remote-change", "changes something on GitHub"),
    ),
    "aws": (
        ("configure +", "credential-write", "changes credentials"),
        ("s3 cp|mv|sync|rm", "remote-change", "changes remote data"),
    ),
    "docker": (
        (
            "push|cp|import|load|save|login|context|plugin",
            "docker-lifecycle",
            "transfers files or images, or changes docker",
        ),
    ),
    "podman": (("unshare|push|cp|login", "docker-lifecycle", "transfers files or images, or enters its namespace"),),
    "systemctl": (
        (
            "start|enable|link|set-environment|import-environment|daemon-reload|edit|reenable|set-property|bind|add-wants",
            "service-stop",
            "starts or changes a service",
        ),
    ),
    "loginctl": (("enable-linger|terminate-user|kill-user|kill-session|attach", "service-stop", "changes sessions"),),
    "journalctl": (("--vacuum-size|--rotate", "service-stop", "deletes logs"),),
    "ip": (
        ("netns|route|link|addr|rule add|del|exec|set|replace|flush", "system-administration", "changes the network"),
    ),
    "openssl": (
        ("s_client|s_server|s_time|ocsp", "network-shell", "opens a network connection"),
        ("engine", "code-injection", "loads a library"),
    ),
    "gcloud": (("auth *", "credential-read", "shows or changes credentials"),),
    "az": (("account|login|keyvault *", "credential-read", "shows or changes credentials"),),
    "vault": (("read|kv|login|token|write *", "credential-read", "shows or changes credentials"),),
    "twine": (("upload|register", "remote-change", "publishes a package"),),
    "kubectl": (
        ("exec|cp|port-forward|proxy|run|attach|debug|config", "remote-change", "runs something in a cluster"),
        ("get secret|secrets", "credential-read", "shows credentials"),
    ),
    "git": (
        ("remote add|set-url|set-head|rename", "git-remote", "changes a git remote"),
        ("credential|credential-store|credential-cache *", "credential-read", "shows or stores credentials"),
        ("request-pull|send-email|imap-send", "data-upload", "sends commits to others"),
    ),
    "cmake": (("--install", "system-write", "installs files"),),
    "conda": (("config *", "tool-configuration", "changes how conda works permanently"),),
}
# An argument that matches completely needs approval.
ARGUMENTS_ASKED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "cmake": (
        (
            r"-D\w*(?:COMPILER|LAUNCHER|TOOLCHAIN|PROGRAM|COMMAND)\w*(?::\w+)?=.*",
            "code-injection",
            "replaces a program",
        ),
    ),
    "deno": (
        (
            r"\w+://.*|-A|--allow-(?:all|run|ffi|write|read|env)\S*",
            "remote-code",
            "runs code with extra permissions or from the network",
        ),
    ),
    **dict.fromkeys(
        ("pip", "pip3", "uv"),
        (
            (r"(?:\w+\+)?\w+://.*|[\w.\[\],-]+\s*@\s*\w.*", "remote-code", "installs a package from a URL"),
            (r"--user", "remote-code", "installs a package for this user"),
        ),
    ),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun"),
        ((r"(?:\w+\+)?\w+://.*|[\w-]+:[\w-]+/.*|git@.*", "remote-code", "installs a package from a URL"),),
    ),
    "go": (
        (r"[\w./-]+@[\w.-]+", "remote-code", "downloads a program and runs it"),
        (r"-w|-u", "tool-configuration", "changes how go works permanently"),
    ),
    "java": ((r"-(?:javaagent|agentlib|agentpath|XX:On\w+|XX:Flags).*", "code-injection", "loads other code"),),
    "journalctl": ((r"--(?:vacuum|rotate|flush).*", "service-stop", "deletes logs"),),
    **dict.fromkeys(
        ("prlimit", "chrt", "taskset", "choom", "ionice", "uclampset"),
        ((r"-\w*p\w*|--pid\S*", "process-attach", "changes a running process"),),
    ),
    **dict.fromkeys(
        ("setsid", "nohup", "disown", "systemd-run"),
        ((r"(?:.*/)?hermes", "hermes-control", "runs Hermes detached from this conversation"),),
    ),
    **dict.fromkeys(
        ("ld-linux-x86-64.so.2", "ld-linux.so.2", "ld-musl-x86_64.so.1", "ld-linux-aarch64.so.1", "ld.so"),
        ((r".*", "loads-program", "runs a program indirectly"),),
    ),
    "curl": (
        (
            r"(?:telnet|gopher|dict|smtps?|ftps?|tftp|ldaps?|scp|sftp|smb|imaps?|pop3s?|rtsp|mqtt|ws)://.*",
            "data-upload",
            "opens a connection that is not a web request",
        ),
    ),
    "rsync": ((r"[\w.@-]+::?[^=]*|rsync://.*", "data-upload", "copies files to or from another machine"),),
    "scp": ((r"[\w.@\[\]-]+:.*|scp://.*", "data-upload", "copies files to or from another machine"),),
    **dict.fromkeys(("http", "https", "xh"), ((r"[\w.-]*:?=?@.+", "data-upload", "sends a file"),)),
    "tmux": (
        (
            r"kill-server|kill-session|source-file|run-shell|if-shell|pipe-pane|send-keys|send|set-option|set",
            "detached-program",
            "controls programs outside this conversation",
        ),
    ),
    "screen": ((r"-X|-S|-r|-x|-d", "detached-program", "controls programs outside this conversation"),),
    **dict.fromkeys(
        ("python", "python3"),
        (
            (
                r"(?:smtpd|ensurepip|pydoc|idlelib|turtledemo|antigravity)(?:\.\w+)*",
                "remote-code",
                "starts a server or installer",
            ),
            (r"-?W?\w+:[^:]*:\w+\.\S*", "code-injection", "imports a module named by an option"),
        ),
    ),
    "sed": ((r"--follow-symlinks", "outside-write", "writes through symbolic links"),),
}
# Packages that `npx` and similar programs may run: common tools of projects.
PROJECT_TOOLS = words(
    "tsc eslint prettier jest vitest vite next webpack rollup tsx ts-node playwright cypress mocha turbo nx biome"
    " stylelint tailwindcss prisma storybook ruff black mypy pytest pre-commit isort flake8 pyright"
)
# Verbs of git that the rules cover. Others may be aliases.
GIT_VERBS = words(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore checkout cherry"
    " cherry-pick clean clone commit config describe diff diff-files diff-index diff-tree difftool fetch"
    " filter-branch filter-repo for-each-ref format-patch fsck gc grep hash-object help init interpret-trailers log"
    " ls-files ls-remote ls-tree merge merge-base mergetool mv name-rev notes prune pull push range-diff read-tree"
    " rebase reflog remote replace reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref"
    " sparse-checkout stage stash status submodule switch symbolic-ref tag update-index update-ref var verify-commit"
    " verify-tag version whatchanged worktree write-tree count-objects diff-pairs fast-export fast-import merge-tree"
    " mktree pack-objects repack"
)
# Settings that `git -c` and `git config` may set: they do not change what runs.
GIT_SETTINGS = (
    r"user\.(?:name|email)|color\..*|column\..*|advice\..*|init\.defaultbranch|log\.(?:date|decorate|abbrevcommit)"
    r"|core\.(?:quotepath|autocrlf|eol|abbrev|filemode|ignorecase|safecrlf|whitespace|longpaths|precomposeunicode)"
    r"|diff\.(?:algorithm|renames|renamelimit|noprefix|context|mnemonicprefix|colormoved|wserrorhighlight)"
    r"|merge\.(?:conflictstyle|ff|renames)|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote)|rebase\.\w+"
    r"|branch\..*\.(?:remote|merge|rebase)|commit\.(?:gpgsign=(?:false|no|0)|verbose)|tag\.(?:sort|gpgsign=false)"
    r"|fetch\.(?:prune|parallel)|status\.\w+|format\.pretty|gc\.auto|http\.(?:postbuffer|lowspeedlimit|lowspeedtime)"
    r"|(?:core\.pager|pager\.\w+)=(?:cat|less|false|true|)|core\.editor=(?:true|:|vim|vi|nano)|rerere\.enabled"
)
