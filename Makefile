# Short names for the tools; each works from a clean clone. Meson does the building.
#
#   make run                   install, build, show            make check               everything that must hold
#   make quick                 most of it, in 5 minutes        make again N=10          the tests so many times
#   make bench                 all benches                     make bench-log           one of them
#       JSON=DIR                   and keep the answers there      OPTIONS='--quick'        and pass options
#   make bench-quick           in 3 minutes: has anything become much slower beside its peer than bench/recorded.toml says?
#   make performance           all benches, and from their answers docs/PERFORMANCE.md
#       NOTE='It was busy.'        and say so there                OPTIONS='--quick'        in a few minutes
#   make fuzz                  look for breaking inputs,       FUZZ_SECONDS=60          so long each
#   make install               the libraries, their headers, pawl.pc, pawl-serve.pc, the program, its manual pages and completions
#       DESTDIR=ROOT               below this folder               PREFIX=/usr              instead of /usr/local
#   make deb                   Debian packages of them, into build/packages
#   make soak                  the suites that take long       make format, make lint   as they say

.PHONY: run check quick again install deb bench bench-quick performance fuzz soak sabotage format lint clean

run:
	./run

check:
	./check

quick:
	./check quick

N = 10

again:
	tools/install build kafka deb test
	tools/again $(OPTIONS) $(N)

install:
	tools/install build
	tools/configure release
	meson configure -Dprefix=$(abspath $(or $(PREFIX),/usr/local)) build/release
	tools/build release pawl libpawl libpawl.a libpawl-serve libpawl-serve.a manual completion_bash completion_zsh
	meson install -C build/release --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

deb:
	tools/install build deb
	tools/deb

# Peers that only these benches need: purpose bench of tools/packages.
bench bench-quick bench-peers bench-views bench-http: PEERS = bench

bench:
	tools/install build kafka test $(PEERS)
	tools/bench $(if $(JSON),--json $(JSON)) $(OPTIONS)

bench-quick:
	tools/install build kafka test $(PEERS)
	tools/bench-quick $(OPTIONS)

bench-%:
	tools/install build kafka test $(PEERS)
	tools/bench $* $(if $(JSON),--json $(JSON)) $(OPTIONS)

performance: bench
	tools/performance $(if $(NOTE),--note '$(NOTE)') $(JSON)

fuzz:
	tools/install build kafka test
	tools/fuzz

sabotage:
	tools/install build kafka test
	tools/sabotage

soak:
	tools/install build kafka test
	tools/build gcc
	tools/run-tests gcc --suite soak --timeout-multiplier 0

format:
	tools/install lint
	tools/format

lint:
	tools/install build kafka test lint
	tools/lint

clean:
	rm -rf build
