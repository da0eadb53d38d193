"""Table of paths that programs run or trust automatically: shells, editors, git, Python, package managers.

A name matches in any directory, so that the table covers homes and projects.
"""

from __future__ import annotations

import re

# Files that programs read when they start.
_FILES = (
    r"\.(?:bash|zsh|k?sh|csh|tcsh|fish)(?:rc|env|_profile|_login|_logout|_aliases|_functions|_completion)",
    r"\.(?:profile|zprofile|zlogin|zlogout|login|logout|xinitrc|xprofile|xsession|xsessionrc|inputrc|pam_environment)",
    r"\.(?:vimrc|gvimrc|exrc|viminfo|emacs|nanorc|gitconfig|tmux\.conf|screenrc|lesskey|lessfilter|dircolors)",
    r"\.(?:gdbinit|lldbinit|pythonrc|pythonrc\.py|pdbrc|irbrc|pryrc|perldb|Rprofile|Renviron|octaverc|ghci)",
    r"\.(?:psqlrc|sqliterc|mysqlrc|curlrc|wgetrc|npmrc|yarnrc|yarnrc\.yml|bunfig\.toml|condarc|pydistutils\.cfg)",
    r"\.(?:envrc|gitattributes|gitmodules|pre-commit-config\.ya?ml|cursorrules|windsurfrules|clinerules|mailcap)",
    r"(?:sitecustomize|usercustomize)\.py",
    r"[^/]*\.pth",
    r"(?:AGENTS?|CLAUDE|GEMINI|SOUL|HERMES|CONVENTIONS)(?:\.local)?\.md",
)
# Directories: everything in them counts.
_DIRECTORIES = (
    r"\.(?:bash_completion|bashrc|profile|zshrc|bash_profile)\.d",
    r"\.config/(?:autostart|systemd|fish|environment\.d|git|nvim|pip|gdb|zsh|emacs|tmux|uv|hermes|Code|plasma-workspace)",
    r"\.config/(?:user-dirs\.dirs|mimeapps\.list|pypoetry|containers|htop|direnv|starship\.toml)",
    r"\.local/(?:s?bin|lib)",
    r"\.local/share/(?:systemd|applications|dbus-1|bash-completion|nautilus|fish|gnome-shell|pnpm|uv)",
    r"\.(?:vim|emacs\.d|oh-my-zsh|nvm|pyenv|rbenv|asdf|sdkman|pip|m2|gradle|cargo|rustup|docker|kube|vscode-server)",
    r"\.git/(?:hooks|modules|info|worktrees)",
    r"\.(?:idea|devcontainer|claude|cursor|husky|windsurf|githooks|direnv)",
    r"\.github/(?:workflows|actions|copilot-instructions\.md|instructions)",
    r"(?:\.?venv|\.virtualenv|env)/s?bin",
    r"node_modules/\.bin",
    r"Library/Launch(?:Agents|Daemons)",
)
_EXACT = (
    r"\.ssh/(?:authorized_keys2?|config|rc|environment)",
    r"\.git(?:/config(?:\.worktree)?)?",
    r"\.vscode(?:/(?:tasks|settings|launch|extensions)\.json)?",
    r"(?:home/[^/]+|root|Users/[^/]+)/bin(?:/.*)?",
)
_SYSTEM = (
    r"/etc/(?:cron|anacron|profile|bash\.bashrc|bash_completion|zsh|rc\.|init\.d|systemd|ld\.so|pam\.d|environment)",
    r"/etc/(?:passwd|group|hosts|fstab|crontab|sudoers|ssh/|apt|skel|update-motd\.d|X11|xdg)",
    r"/var/spool/(?:cron|at)",
)
_STARTUP = re.compile(
    rf"/(?:{'|'.join(_FILES)})\Z|/(?:{'|'.join(_DIRECTORIES)})(?:/|\Z)|/(?:{'|'.join(_EXACT)})\Z|\A(?:{'|'.join(_SYSTEM)})"
)


def is_startup(path: str) -> bool:
    """Return whether a program runs or trusts this absolute path automatically."""
    return bool(_STARTUP.search(path))
