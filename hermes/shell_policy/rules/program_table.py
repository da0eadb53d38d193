"""Table of programs: which of their options write a file, run a program, delete or send something.

An option is named without its dashes. One letter is a short option, which may stand in a bundle; a longer name may be
shortened where the program allows it. The fields of an entry are those of `Program`.
"""

from __future__ import annotations

from functools import lru_cache

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.text_table import program_fields

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Options of one program."""

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


_TABLE = """
tar gtar bsdtar; valued fCbXTKNVgIFHL; values directory exclude exclude-from file files-from format group mode mtime
  owner; writes C f g directory file index-file listed-incremental one-top-level transform xform; runs F I P
  absolute-names checkpoint-action info-script new-volume-script rmt-command rsh-command to-command
  use-compress-program; deletes recursive-unlink remove-files; flags P absolute-names one-top-level; bare_bundle
curl; valued oDcTdFKHbuxXAemrUEtzCYyQPw; values cacert cert connect-timeout header max-redirs max-time range request
  retry url user-agent write-out; writes D c o alt-svc cookie-jar dump-header etag-save hsts libcurl output
  output-dir stderr trace trace-ascii; runs E K cert config engine key netrc-file; sends F T x abstract-unix-socket
  connect-to dns-servers doh-url form interface mail-from preproxy proxy resolve socks4 socks4a socks5
  socks5-hostname unix-socket upload-file
wget; valued OoaPeiUtTwQBADRIX; values header timeout tries user-agent; writes O P a o append-output
  directory-prefix output-document output-file rejected-log save-cookies warc-file; runs e config execute
  use-askpass; sends body-file load-cookies post-file proxy-user
gcc g++ cc c++ clang clang++ ld as tcc; valued oIBLlDUxMTj; values MF MT idirafter include isystem; writes o MF
  aux-info dumpbase dumpdir; runs B Xlinker fpass-plugin fplugin fuse-ld load plugin specs wrapper; single_dash
ssh autossh; valued bcDEeFIiJLlmOopQRSWw; writes E; runs F I; sends D R W w
scp; valued cFiJloPSDX; runs D F S
sftp; valued BbcDFiJloPRSsX; runs D F S b s
ssh-keygen; valued fNCtbmOIzVDYsnE; writes f; runs D
ssh-add; valued tsSe; runs S s
gdb; valued xpcsd; values cd core pid symbols; runs x command eval-command ex iex init-command init-eval-command ix;
  single_dash
lldb; valued osSOKpP; runs K O S o s attach-name one-line one-line-before-file source source-before-file
vim vi nvim view gvim vimdiff ex rvim; valued cSuUTWwtpi; writes W i w startuptime; runs S U c u cmd luafile
  startuptime
emacs; valued lfq; runs f l batch eval execute funcall load script; flags batch
nano; valued ofCT; writes C o; runs f rcfile
less; valued okOtbjpPxT; writes O o LOG-FILE log-file; runs k lesskey-file lesskey-src
man; valued PHlCMLSser; runs C H P l config-file html local-file pager; flags html
groff; valued TmKf; runs U; flags U
nroff; valued Tm; runs U
zip; valued OTTbntixPs; writes O b out output-file temp-path; runs TT unzip-command; deletes m move
unzip; valued dxP; writes d; runs :
unrar 7z 7za 7zr rar; valued owt; writes o w; deletes sdel
cp mv ln install gcp gmv; valued tSZmog; values group mode owner suffix; writes t target-directory
ar; writes output
rsync; valued efTBM; writes backup-dir log-file only-write-batch partial-dir temp-dir write-batch; runs e config
  daemon rsh rsync-path; deletes del delete delete-after delete-before remove-source-files; sends files-from
  password-file sockopts; flags daemon
sort; valued oTStk; writes o output temporary-directory; runs compress-program
base64; valued io; writes o output
shuf; valued oni; writes o output
split; valued abClnt; runs filter
csplit; valued fbn; writes f prefix
patch; valued oidprBzYD; writes B d o r directory output reject-file
iconv; valued oft; writes o output
strace; valued aeoOpPsSuEX; writes o output; runs E env
ltrace; valued aAeFlnopsuxw; writes o output; runs F config
perf; valued oispe; writes o output; runs s script
valgrind; writes log-file xml-file; runs db-command
time; valued fo; writes o output
script; valued cIOBTmEo; writes B I O T log-in log-io log-out log-timing; runs c command
openssl; values K k in inkey iv pass; writes CAout keyout out outform_file serial writerand; runs config engine
  pre_serv provider provider-path; single_dash
gpg; valued oru; writes o homedir output; runs d decrypt exec-path export-secret-keys export-secret-subkeys
  photo-viewer; sends keyserver send-keys
git; valued oCcOmSJuxnFW; values author date message; writes f o file output output-directory separate-git-dir
  work-tree; runs O c x commit-filter config-env env-filter exec exec-path extcmd git-dir httpd index-filter
  msg-filter open-files-in-pager receive-pack sendmail-cmd super-prefix template tree-filter upload-pack
make; valued CfIoWEj; values directory jobs; runs E I f eval file include-dir makefile
ninja; valued Cfjkl; runs f
cmake; valued SBGDPUCTA; values build; writes install-prefix; runs C E P preset toolchain
meson; runs cross-file native-file
sqlite3; values newline nullvalue separator; runs cmd init vfs vfstrace zip; single_dash
psql; valued cfovdhpUL; writes L o log-file output; runs f file
rg; valued efgtTmABCjrM; runs hostname-bin pre
gawk; valued vfFlieo; writes d o p dump-variables pretty-print profile; runs l load
inotifywait; valued oet; writes o outfile
tcpdump; valued zwWCGrinsc; writes w; runs z
dmesg; runs pager
aria2c; valued dojlsx; writes d l o dir log out; runs conf-path on-download-complete on-download-error
  on-download-start on-download-stop
lynx; runs cfg cmd_script lss; single_dash
pandoc; valued otfFLHBA; writes o output; runs F L defaults filter lua-filter pdf-engine
latex pdflatex xelatex lualatex tex; writes output-directory; runs enable-write18 shell-escape; flags enable-write18
  shell-escape; single_dash
gnuplot; valued e; runs e
octave; runs eval
dc; valued ef; runs e expression
perl; valued MmIdx; runs I M d m x
ruby; valued rIE; runs I r
lua; valued l; runs l
php; valued dcSz; runs S c d z
node nodejs; valued r; runs r env-file eval-file experimental-loader import inspect inspect-brk loader
  openssl-config require snapshot-blob; flags inspect inspect-brk
java; runs XX:OnError agentlib agentpath classpath cp jar javaagent; flags javaagent; single_dash
pip pip3; valued ricte; values constraint requirement; writes d t cache-dir dest log prefix report root src target
  wheel-dir; runs f config-settings extra-index-url find-links global-option index-url python trusted-host user;
  flags user
uv; writes cache-dir prefix target; runs default-index extra-index-url index index-url with with-editable
npm pnpm yarn; valued Cgc; writes dir prefix; runs g call editor global globalconfig location node-options registry
  script-shell userconfig; flags g global
cargo; runs config target-dir
go; valued Co; writes o; runs exec modfile overlay toolexec vettool; single_dash
pytest; valued pckmorn; writes basetemp; runs c p confcutdir config-file rootdir
coverage; writes data-file; runs rcfile
logrotate; valued sl; writes l s state
systemctl; valued HMps; runs H M host machine root
kubectl; runs kubeconfig
terraform; runs chdir; single_dash
jq; valued Lf; runs L
apt-get apt; valued oct; runs c o config-file option
dpkg; valued iD; runs i admindir configure install root unpack
rpm; valued iUF; runs F U i install root upgrade
crontab; valued u; runs e r; flags e r
logger; valued nPfptiT; sends P n port server
dig; valued pbkfqtcxy; runs f
date; valued dfrsI; runs s set
file; valued mfFPe; runs C f m files-from magic-file
"""


def _program(fields: dict[str, tuple[str, ...]]) -> Program:
    options = {name: frozenset(values) for name, values in fields.items() if values and name != "valued"}
    return Program(
        valued="".join(fields.get("valued", ())),
        single_dash="single_dash" in fields,
        bare_bundle="bare_bundle" in fields,
        **options,
    )


PROGRAMS = {name: _program(fields) for name, fields in program_fields(_TABLE)}
