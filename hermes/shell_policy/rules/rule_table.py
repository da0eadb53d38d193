"""Tables of programs whose use, verbs or arguments need approval, or are blocked in every mode.

A line `rule: reason` opens a list of programs, which may have conditions, separated by ` & `:

    program program          any use but a request for help
    program / a|b c|d        the verb is `a` or `b`, and a later word matches `c|d`; `!c|d`: no later word does
    program = regex          an argument matches completely; `!= regex`: no argument does
    program ? regex          one of the first words matches completely
    program ~ regex          the arguments, joined by blanks, contain a match
    program : -a --all       one of these options is given
    program +                it has arguments
"""

from __future__ import annotations

from hermes.shell_policy.bash.syntax import words

# Rules by severity. Those that are not listed come last.
_WORST_FIRST = """
hidden-characters hermes-control hermes-home-read secret-tree credential-write credential-read process-environment
process-attach pipe-to-shell download-and-run remote-code embedded-command network-shell data-upload prompt-write
startup-write code-injection git-config superuser system-write unresolved-command unparsable-line recursive-delete
find-delete xargs-delete outside-write outside-path unknown-path inline-code namespace docker-privileged message-bus
unix-socket
"""
_RANKS = {rule: rank for rank, rule in enumerate(_WORST_FIRST.split())}

ASKED = r"""
superuser: runs as another user
sudo su doas pkexec runuser sudoedit run0 gosu su-exec visudo vipw
remote-code: downloads a program and runs it
npx bunx uvx pipx corepack pnpx dlx degit cookiecutter copier
go = [\w./-]+@[\w.-]+
remote-code: runs or publishes a package
npm / exec|x|explore|link|edit|create|publish|unpublish|adduser|login|token|set
npm / init .*
pnpm / dlx|exec|create|publish|link|setup|env
yarn / dlx|exec|create|publish|link|global
bun / x|create|publish|link|upgrade
remote-code: runs code that is not checked
deno / eval|install|compile|upgrade|publish|repl
remote-code: runs code with extra permissions or from the network
deno = \w+://.*|-A|--allow-(?:all|run|ffi|write|read|env)\S*
remote-code: installs, publishes or runs a package
uv / tool run|install|upgrade
uv / publish|self|python
gem / install|push|yank|exec|update
cargo / install|publish|yank|login|owner
go / install|get
remote-code: installs a package from a URL
pip pip3 uv = (?:\w+\+)?\w+://.*|[\w.\[\],-]+\s*@\s*\w.*
npm pnpm yarn bun = (?:\w+\+)?\w+://.*|[\w-]+:[\w-]+/.*|git@.*
remote-code: installs a package for this user
pip pip3 uv = --user
remote-code: installs a program
gh / extension install|upgrade|exec
remote-code: starts a server or installer
python python3 = (?:smtpd|ensurepip|pydoc|idlelib|turtledemo|antigravity)(?:\.\w+)*
tool-configuration: changes how the tool works permanently
npm / config|c set|edit|delete
pnpm yarn / config set|delete
pip / config set|edit|unset
conda / config .*
go = -w|-u
tool-configuration: changes which command gh runs
gh / alias set|import
tool-configuration: changes the settings of the desktop, the network or an editor
gsettings dconf kwriteconfig5 xdg-mime xdg-settings update-desktop-database nmcli code cursor
detached-program: starts a program outside this conversation
systemd-run daemonize start-stop-daemon
detached-program: opens a file with its default program
xdg-open gio open x-www-browser
detached-program: controls programs outside this conversation
tmux = kill-server|kill-session|source-file|run-shell|if-shell|pipe-pane|send-keys|send|set-option|set
screen = -X|-S|-r|-x|-d
message-bus: controls other programs of this user
dbus-send gdbus busctl qdbus dbus-monitor
namespace: enters or creates a namespace or mount
nsenter unshare chroot pivot_root mount umount fusermount fusermount3 sshfs bwrap firejail setpriv capsh
  buildah toolbox distrobox runc crun
namespace: runs a program on the host or in a virtual machine
flatpak-spawn host-spawn machinectl systemd-nspawn qemu-system-x86_64 wsl.exe cmd.exe powershell.exe
  distrobox-host-exec incus virsh
data-upload: sends data over the network
nc ncat netcat nc.openbsd nc.traditional socat telnet ftp tftp lftp sftp mail mailx sendmail mutt msmtp swaks websocat
  wscat smbclient finger whois rclone s3cmd croc wormhole magic-wormhole transfer bore mosh rsh rlogin ldapsearch
data-upload: sends data over the network that is only known at run time
curl wget http https xh curlie dig nslookup host ping ping6 drill kdig getent traceroute ~ \x00
data-upload: publishes a file
gh / gist create|edit
data-upload: sends commits to others
git / request-pull|send-email|imap-send
data-upload: opens a connection that is not a web request
curl = (?:telnet|gopher|dict|smtps?|ftps?|tftp|ldaps?|scp|sftp|smb|imaps?|pop3s?|rtsp|mqtt|ws)://.*
data-upload: copies files to or from another machine
rsync = [\w.@-]+::?[^=]*|rsync://.*
scp = [\w.@\[\]-]+:.*|scp://.*
data-upload: sends a file
http https xh = [\w.-]*:?=?@.+
network-shell: opens this machine to the network
ngrok cloudflared localtunnel lt chisel frpc telnetd sshd ttyd gotty wetty httpd inetd
network-shell: opens a shell or a listener to the network
nc ncat netcat nc.traditional nc.openbsd : -e -c --exec --sh-exec -l --listen
socat ~ (?i)exec:|system:|listen
network-shell: opens a network connection
openssl / s_client|s_server|s_time|ocsp
network-shell: sends keys or configuration to another machine
ssh-copy-id
process-attach: inspects or changes a running process
gcore reptyr renice py-spy bpftrace nsjail
gdb strace ltrace gcore py-spy reptyr lldb bpftrace perf : -p --pid --attach
gcore +
prlimit chrt taskset choom ionice uclampset = -\w*p\w*|--pid\S*
process-environment: shows the environment of other processes
ps = [a-zA-Z]*e[a-zA-Z]*
inline-code: runs code in a language that is not checked
expect osascript emacs m4 dc julia guile tclsh jshell octave gnuplot rscript groovy lua luajit
loads-program: runs a program indirectly
gdb lldb ld.so rlwrap entr dotnet convert jar
ld-linux-x86-64.so.2 ld-linux.so.2 ld-musl-x86_64.so.1 ld-linux-aarch64.so.1 ld.so +
code-injection: loads a program, library or other code
enable : -f
hash : -p
openssl / engine
java = -(?:javaagent|agentlib|agentpath|XX:On\w+|XX:Flags).*
python python3 = -?W?\w+:[^:]*:\w+\.\S*
code-injection: replaces a program
cmake = -D\w*(?:COMPILER|LAUNCHER|TOOLCHAIN|PROGRAM|COMMAND)\w*(?::\w+)?=.*
code-injection: lets a repository address run a program
git = (?:ext|fd)::.*|protocol\.\w+\.allow.*|protocol\.allow.*
code-injection: runs a program named by an option
git / \S+ -O.+|--open.*|--upload-p.*|--receive-p.*
git / clone -u.*
code-injection: lets the environment replace the programs that recipes run
make gmake = -[a-zA-Z]*e[a-zA-Z]*|--environment-overrides
code-injection: exports every variable that is set later
set = -[a-z]*a[a-z]*|allexport
pipe-to-shell: runs recipes from its input, or with another shell
make = /dev/fd/63|SHELL=.*|\.SHELLFLAGS=.*|--ev.*|-[a-zA-Z]*E.*
pipe-to-shell: runs the output of another command as a script
awk gawk mawk nawk sed gsed psql mysql gdb lldb vim vi nvim ex expect bc octave m4 gnuplot
  = [-fSxi=]*/dev/(?:fd/|stdin).*
pipe-to-shell: runs a file that is only known at run time
source . = (?:/dev/|\x00).*
pipe-to-shell: runs a startup file named by an option
sh bash zsh dash ksh mksh ash fish rbash csh tcsh pwsh = --(?:rcfile|init-file).*
remote-change: changes other machines
ansible ansible-playbook vagrant salt puppet chef-client fabric fab
remote-change: changes something on GitHub
gh / secret|ssh-key|gpg-key|api
remote-change: changes remote data
aws / s3 cp|mv|sync|rm
remote-change: runs something in a cluster
kubectl / exec|cp|port-forward|proxy|run|attach|debug|config
remote-change: deletes or changes remote resources
aws gsutil gcloud az kubectl oc helm terraform tofu pulumi heroku fly flyctl doctl vercel netlify gh rclone s3cmd mc
  eksctl vagrant virsh lxc consul vault etcdctl ansible ansible-playbook
  ? (?:delete|remove|terminate)\S*|rm|rb|destroy|uninstall|purge|drain|cordon|scale|undefine|del|-destroy|prune|sync|
  apply|exec|revoke|sweep|deletefile|transfer
remote-change: publishes or withdraws a package
npm cargo twine gem poetry pnpm yarn uv / publish|unpublish|upload|yank
twine / register
credential-read: reads credentials, the clipboard or the screen
secret-tool security keyctl pass gopass op bw lpass aws-vault chamber gnome-keyring-daemon kwallet-query
  xclip xsel wl-paste wl-copy pbpaste xdotool ydotool wtype scrot grim import screencapture coredumpctl
credential-read: shows or changes credentials
gh gcloud / auth
az / account|login|keyvault
vault / read|kv|login|token|write
kubectl / get secret|secrets
git / credential|credential-store|credential-cache
credential-write: changes credentials
aws / configure
outside-write: may unpack files to any directory
cpio pax shar rpm2cpio
outside-write: may write outside the working directory
git / am|apply --unsafe-paths.*|--directory=\.\..*
sed = --follow-symlinks
system-write: installs files
cmake = --install
kill-9: kills without a chance to clean up
kill = (?i)-(?:9|s?(?:SIG)?KILL|n9|s9)|(?:SIG)?KILL|9 & != -[lL]
kill-by-name: kills processes by name
pkill killall skill xkill killall5
kill-by-name: kills processes by the files or ports they use
fuser : -k --kill
direnv: lets a directory run code
direnv
resource: uses much disk space or processor time
fallocate yes stress stress-ng
hermes-control: runs Hermes detached from this conversation
setsid nohup disown systemd-run = (?:.*/)?hermes
recursive-delete: deletes a directory tree
rm shred srm grm wipe del : -r -R --recursive
rm shred srm grm wipe del = --r.*
recursive-delete: destroys a file irrecoverably
shred srm wipe != --help|--version
recursive-delete: deletes every file of a directory
rm shred srm grm wipe del = (?!-)(?:(?:.*/)?.?\*|.*\*/+)
recursive-delete: deletes old files
tmpreaper tmpwatch logrotate
recursive-delete: deletes files that its source lacks
rsync = --del.*|--remove-source.*
recursive-delete: empties files
truncate != --help|--version
mv = /dev/null
recursive-delete: deletes tracked files
git / rm -[a-zA-Z]*[rf].*
find-delete: deletes the files that it finds
find gfind fd fdfind = -delete
dd: copies raw data
dd ddrescue dcfldd != --help|--version
sql-destructive: administers a database
dropdb dropuser mysqladmin pg_dropcluster != --help|--version
history: changes or repeats the history
history fc : -c -s -e
crontab: changes scheduled commands
crontab != -l
crontab = (?!-l\Z).*
at batch != -[^-]*l.*
service-stop: stops or changes a service
systemctl service rc-service launchctl supervisorctl initctl sv loginctl
  = stop|restart|disable|mask|kill|try-restart|force-reload|isolate|daemon-reexec|suspend|hibernate|hybrid-sleep|edit|
  revert|set-default|unload|bootout|remove
systemctl / start|enable|link|set-environment|import-environment|daemon-reload|edit|reenable|set-property|bind|
  add-wants
loginctl / enable-linger|terminate-user|kill-user|kill-session|attach
service-stop: deletes logs
journalctl = --(?:vacuum|rotate|flush).*
system-administration: changes the network
ip / netns
ip / route|link|addr|rule add|del|exec|set|replace|flush
system-administration: changes the system's configuration
insmod rmmod modprobe swapoff swapon iptables ip6tables nft ufw firewall-cmd ebtables umount losetup fdisk sfdisk
  cfdisk parted gdisk sgdisk lvremove vgremove pvremove lvreduce resize2fs fsck e2fsck tune2fs mdadm dmsetup zfs
  zpool btrfs setenforce apparmor_parser auditctl ifdown ifup tc brctl localectl update-grub grub-install efibootmgr
  useradd userdel usermod groupadd groupdel groupmod passwd chpasswd adduser deluser addgroup delgroup gpasswd chsh
  chfn update-rc.d chkconfig update-alternatives dpkg-reconfigure setcap setfacl chattr debugfs hdparm cryptsetup
  nvme kexec wipefs != --help|-l|--list|--version|-L|list|status|show|-n
mount sysctl timedatectl hostnamectl + & != --help|-l|--list|--version|-L|list|status|show|-n
package-removal: removes packages
pip gem pipx = uninstall
apt apt-get aptitude dnf yum pacman zypper apk brew snap flatpak dpkg rpm port nix-env emerge pkg opkg winget choco
  ? remove|purge|autoremove|erase|uninstall|del|delete|rm|-R\w*|-[reCP]|--(?:remove|purge|erase|unmerge)|\w+-upgrade
docker-lifecycle: transfers files or images, or changes docker
docker / push|cp|import|load|save|login|context|plugin
podman / unshare|push|cp|login
docker-lifecycle: stops or removes containers, images or volumes
docker podman nerdctl docker-compose podman-compose
  ? stop|kill|rm|rmi|restart|pause|down|prune|remove|update|swarm
docker-privileged: gives a container control over the machine
docker podman nerdctl docker-compose podman-compose
  ~ --privileged|--cap-add|--security-opt|--(?:pid|net(?:work)?|userns|ipc)[= ]host|--device
docker-privileged: gives a container access to the machine's files
docker podman nerdctl docker-compose podman-compose
  ~ (?:-v|--volume)[= ]?(?:/|~|\.\.)?(?:/?(?:etc|usr|var|root|home|proc|sys|dev|boot))?/?:|docker\.sock|
  source=/(?:,|etc|root|home)
recursive-permissions: changes the permissions of a directory tree
chmod chown chgrp : -R --recursive --recurs
git-reset-hard: discards uncommitted work
git / reset --merge|--keep|--h.*
git-force-push: rewrites or deletes commits that others have
git / push --forc.*|--mirror.*|--delete.*|--prune.*|-[a-zA-Z]*[fd][a-zA-Z]*|\+.*|:[\w/].*
git-clean: deletes untracked files
git / clean -[a-zA-Z]*[fxXdi].*|--force.* & != -[^-]*n.*|--dry-run
git-branch-delete: deletes or moves a branch
git / branch -[a-zA-Z]*[Ddf].*|--delete.*|--force.*|-M.*
git-branch-delete: deletes or moves a tag
git / tag -d|--delete|-f|--force
git-branch-delete: removes a worktree, submodule or remote
git / worktree|submodule|remote remove|deinit|prune|rm
git-rewrite: rewrites history
git / filter-branch|filter-repo|fast-import|replace|update-ref|prune
git / gc .*prune.*
git / rebase --exec.*|-x.*|-i.*|--interactive.*
git-rewrite: deletes the record needed to recover lost work
git / reflog expire|delete
git-discard: discards uncommitted changes
git / checkout|restore|switch -[a-zA-Z]*f|--force.*|--discard-changes.*
git / checkout --|\.
git / restore --worktree
git / restore !--staged
git-discard: discards stashed work
git / stash drop|clear
git-remote: changes a git remote
git / remote add|set-url|set-head|rename
git-config: uses settings or programs from another place
git = --config-env.*|--exec-path=.*|--git-dir.*|--super-prefix.*
git-config: uses settings from a directory that is not checked
git = --bare & = -C
git-config: copies hooks from a template
git / init --template.*
"""

BLOCKED = r"""
format-disk: overwrites a disk with a new file system
mkfs mke2fs mkswap wipefs blkdiscard newfs mkdosfs mkntfs zpool-destroy != --help|-V|--version
format-disk: erases a disk
cryptsetup = (?i)luksformat|erase|luksErase
nvme = format|sanitize
hdparm = --(?:security-erase|trim-sector|yes-i-know).*
badblocks = -\w*w\w*
sgdisk = -[zZo]|--zap.*|--clear
diskutil = (?i)erase\w+|partitiondisk|zerodisk
zpool = destroy|labelclear
format = [a-zA-Z]:
power-off: stops the machine
shutdown reboot halt poweroff telinit kexec != --help|--version|-c
init = [016sS]
systemctl loginctl = (?:poweroff|reboot|halt|rescue|emergency)(?:\.target)?|shutdown\.target|kexec|soft-reboot|exit
busctl dbus-send gdbus qdbus ~ PowerOff|Reboot|Halt|KExec
stop-hermes: kills Hermes itself
kill pkill killall killall5 skill slay xkill tskill taskkill fuser ~ (?i)hermes
stop-hermes: stops Hermes itself
systemctl service rc-service launchctl supervisorctl sv s6-svc pm2 docker podman initctl snap ~ (?i)hermes
  & = stop|restart|kill|disable|mask|rm|remove|down|unload|bootout|pause|try-restart|reload|delete|-d|-k|force-reload|
  condrestart
kill-all: kills every process
killall5 != \Z
delete-system: disables the protection of the root directory
rm rmdir unlink shred srm grm wipe trash trash-put gio del = --no-preserve-root
"""

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


def severity(rule: str) -> int:
    """Return a rule's rank; 0 is the worst. Unlisted rules come last."""
    return _RANKS.get(rule, len(_RANKS))
