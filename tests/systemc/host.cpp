// The host model of the papers (a CPU, accelerators behind a bus, placement by finish time) in
// SystemC: a peer for the simulator, to compare figures and speed with. Written from the models'
// description alone; SC_METHODs and events only, which is the fastest that SystemC has.
//
//   host SIZES.csv RATE_BPS ACCELERATORS [QUEUE [ties]]
//
// SIZES.csv has a header line and one payload size in bytes on each line. Prints one line of JSON.
//
// SystemC leaves the order of what happens at one instant open. With `ties` it is that of the models, FIFO by when
// it was scheduled: one delta cycle collects all that is due, the next does it in order. That is slower, so it is
// for comparing figures; speed is compared without.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

using sc_core::sc_event;
using sc_core::sc_module;
using sc_core::sc_module_name;
using sc_core::sc_time;

namespace {

constexpr uint64_t OVERHEAD = 40;                        // bytes
#ifndef CPU_INIT_PS
#define CPU_INIT_PS 3'000'000
#define CPU_BLOCK_PS 920'000
#endif
constexpr uint64_t CPU_INIT = CPU_INIT_PS, CPU_BLOCK = CPU_BLOCK_PS;  // picoseconds
constexpr uint64_t CARD_INIT = 1'000'000, CARD_BLOCK = 440'000;
constexpr double BUS_CLOCK = 66e6;
constexpr uint64_t BUS_WIDTH = 4, BUS_ADDRESS = 1;

struct Packet {
    uint64_t bytes, blocks, arrival, chosen, done;
    int processor;
};

std::vector<Packet> packets;
size_t completed = 0;
uint64_t last_completion = 0;

uint64_t now() { return sc_core::sc_time_stamp().value(); }

sc_time after(uint64_t picoseconds) { return sc_time::from_value(picoseconds); }

uint64_t transfer_time(uint64_t bytes) {
    const uint64_t cycles = BUS_ADDRESS + (bytes + BUS_WIDTH - 1) / BUS_WIDTH;
    return static_cast<uint64_t>(cycles * 1e12 / BUS_CLOCK + 0.5);
}

void finish(uint32_t packet) {
    packets[packet].done = now();
    last_completion = now();
    ++completed;
}

// What is due at one instant, in the order in which it was scheduled.
struct Ties : sc_module {
    bool kept = false;
    uint64_t scheduled = 0;
    std::vector<std::pair<uint64_t, std::function<void()>>> due;
    sc_event all_due;

    explicit Ties(sc_module_name name) : sc_module(name) {
        SC_HAS_PROCESS(Ties);
        SC_METHOD(run);
        sensitive << all_due;
        dont_initialize();
    }
    // Tells what happens now under the number that it got when it was scheduled.
    template <typename Happens> void happen(uint64_t number, Happens happens) {
        if (!kept) return happens();
        due.emplace_back(number, happens);
        all_due.notify(sc_core::SC_ZERO_TIME);
    }
    void run() {
        std::sort(due.begin(), due.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        for (auto &one : due) one.second();
        due.clear();
    }
};

Ties *ties = nullptr;
// Arrivals come after everything else of their instant.
constexpr uint64_t LAST = std::numeric_limits<uint64_t>::max();

// A FIFO in front of a processor, with what the rule of finish time wants to know of it.
struct Queue {
    uint64_t init = 0, block = 0;
    size_t limit = 1000;
    std::deque<uint32_t> waiting;
    uint64_t waiting_cost = 0, taken_at = 0, taken_cost = 0, busy = 0;

    uint64_t cost(uint32_t packet) const { return init + block * packets[packet].blocks; }
    uint64_t wait() const {
        const uint64_t gone = now() - taken_at;
        return waiting_cost + (taken_cost > gone ? taken_cost - gone : 0);
    }
    void push(uint32_t packet) {
        waiting.push_back(packet);
        waiting_cost += cost(packet);
    }
    uint32_t take() {
        const uint32_t packet = waiting.front();
        waiting.pop_front();
        taken_cost = cost(packet);
        taken_at = now();
        waiting_cost -= taken_cost;
        return packet;
    }
};

struct Processor : sc_module {
    Queue queue;
    sc_event *room = nullptr;
    using sc_module::sc_module;
    virtual void offer() = 0;  // something was put into the queue
};

struct Cpu : Processor {
    sc_event end;
    uint64_t number = 0;
    uint32_t current = 0;
    bool working = false;

    explicit Cpu(sc_module_name name) : Processor(name) {
        SC_HAS_PROCESS(Cpu);
        SC_METHOD(ended);
        sensitive << end;
        dont_initialize();
    }
    void start() {
        current = queue.take();
        room->notify(sc_core::SC_ZERO_TIME);
        working = true;
        queue.busy += queue.taken_cost;
        number = ties->scheduled++;
        end.notify(after(queue.taken_cost));
    }
    void ended() {
        ties->happen(number, [this] {
            finish(current);
            working = false;
            if (!queue.waiting.empty()) start();
        });
    }
    void offer() override {
        if (!working) start();
    }
};

struct Card;

// First come, first served; one transfer at a time.
struct Bus : sc_module {
    struct Request {
        Card *card;
        uint64_t time;
    };
    std::deque<Request> requests;
    bool busy = false;
    uint64_t load = 0, number = 0;
    sc_event end;

    explicit Bus(sc_module_name name) : sc_module(name) {
        SC_HAS_PROCESS(Bus);
        SC_METHOD(ended);
        sensitive << end;
        dont_initialize();
    }
    void ask(Card *card, uint64_t time) {
        requests.push_back({card, time});
        if (!busy) grant();
    }
    void grant() {
        busy = true;
        number = ties->scheduled++;
        load += requests.front().time;
        end.notify(after(requests.front().time));
    }
    void ended() {
        ties->happen(number, [this] { transferred(); });
    }
    void transferred();
};

// Fetch, compute, write back; one job at a time.
struct Card : Processor {
    Bus *bus = nullptr;
    enum { IDLE, FETCH, COMPUTE, WRITE } state = IDLE;
    uint32_t current = 0;
    uint64_t number = 0;
    sc_event computed;

    explicit Card(sc_module_name name) : Processor(name) {
        SC_HAS_PROCESS(Card);
        SC_METHOD(ended);
        sensitive << computed;
        dont_initialize();
    }
    void start() {
        current = queue.take();
        room->notify(sc_core::SC_ZERO_TIME);
        state = FETCH;
        bus->ask(this, transfer_time(packets[current].bytes));
    }
    void transferred() {
        if (state == FETCH) {
            state = COMPUTE;
            queue.busy += queue.cost(current);
            number = ties->scheduled++;
            computed.notify(after(queue.cost(current)));
            return;
        }
        finish(current);
        state = IDLE;
        if (!queue.waiting.empty()) start();
    }
    void ended() {
        ties->happen(number, [this] {
            state = WRITE;
            bus->ask(this, transfer_time(packets[current].bytes));
        });
    }
    void offer() override {
        if (state == IDLE) start();
    }
};

void Bus::transferred() {
    Card *card = requests.front().card;
    requests.pop_front();
    busy = false;
    card->transferred();
    if (!busy && !requests.empty()) grant();
}

struct Scheduler : sc_module {
    std::vector<Processor *> processors;  // the CPU first
    sc_event arrival, room;
    size_t next = 0;
    int choice = -1;

    explicit Scheduler(sc_module_name name) : sc_module(name) {
        SC_HAS_PROCESS(Scheduler);
        SC_METHOD(arrived);
        sensitive << arrival;
        SC_METHOD(place);
        sensitive << room;
        dont_initialize();
    }
    void arrived() {
        ties->happen(LAST, [this] { place(); });
    }
    void place() {
        while (next < packets.size() && packets[next].arrival <= now()) {
            Packet &packet = packets[next];
            const uint32_t index = static_cast<uint32_t>(next);
            if (choice < 0) {
                uint64_t best = std::numeric_limits<uint64_t>::max();
                for (size_t k = 1; k <= processors.size(); ++k) {  // accelerators win ties
                    const size_t p = k % processors.size();
                    const Queue &queue = processors[p]->queue;
                    const uint64_t finishing = queue.wait() + queue.cost(index);
                    if (finishing < best) {
                        best = finishing;
                        choice = static_cast<int>(p);
                    }
                }
                packet.chosen = now();
                packet.processor = choice;
            }
            Processor &processor = *processors[choice];
            if (processor.queue.waiting.size() >= processor.queue.limit) return;
            processor.queue.push(index);
            processor.offer();
            choice = -1;
            ++next;
        }
        if (next < packets.size() && packets[next].arrival > now()) arrival.notify(after(packets[next].arrival - now()));
    }
};

}  // namespace

int sc_main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: host SIZES.csv RATE_BPS ACCELERATORS [QUEUE [ties]]\n");
        return 2;
    }
    const double rate = std::atof(argv[2]);
    const int cards = std::atoi(argv[3]);
    const size_t limit = argc > 4 ? static_cast<size_t>(std::atol(argv[4])) : 1000;
    std::ifstream file(argv[1]);
    std::string line;
    std::getline(file, line);
    uint64_t sent = 0;
    while (std::getline(file, line)) {
        const uint64_t bytes = std::strtoull(line.c_str(), nullptr, 10) + OVERHEAD;
        const uint64_t arrival = static_cast<uint64_t>(8.0L * sent * 1e12L / rate + 0.5L);
        packets.push_back({bytes, (bytes + 15) / 16, arrival, 0, 0, 0});
        sent += bytes;
    }
    sc_core::sc_set_time_resolution(1, sc_core::SC_PS);
    Ties order("ties");
    order.kept = argc > 5 && std::string(argv[5]) == "ties";
    ties = &order;
    Scheduler scheduler("scheduler");
    Cpu cpu("cpu");
    Bus bus("bus");
    std::deque<Card> all;
    cpu.queue.init = CPU_INIT;
    cpu.queue.block = CPU_BLOCK;
    scheduler.processors.push_back(&cpu);
    for (int k = 0; k < cards; ++k) {
        all.emplace_back(("card" + std::to_string(k)).c_str());
        all.back().bus = &bus;
        all.back().queue.init = CARD_INIT;
        all.back().queue.block = CARD_BLOCK;
        scheduler.processors.push_back(&all.back());
    }
    for (Processor *processor : scheduler.processors) {
        processor->queue.limit = limit;
        processor->room = &scheduler.room;
    }
    const std::clock_t start = std::clock();  // processor time: the machine may be busy with others
    sc_core::sc_start();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;

    const double elapsed = (last_completion - packets.front().arrival) * 1e-12;
    double processing = 0, total = 0;
    std::vector<uint64_t> shares(scheduler.processors.size());
    for (const Packet &packet : packets) {
        processing += (packet.done - packet.chosen) * 1e-12;
        total += (packet.done - packet.arrival) * 1e-12;
        ++shares[packet.processor];
    }
    std::printf("{\"packets\": %zu, \"completed\": %zu, \"seconds\": %.6f, \"packets_per_s\": %.0f, \"elapsed_s\": %.12g, "
                "\"throughput_bps\": %.12g, \"bus_load\": %.12g, \"processing_mean_s\": %.12g, \"total_mean_s\": %.12g, "
                "\"processor_packets\": [",
                packets.size(), completed, seconds, packets.size() / seconds, elapsed, 8.0 * sent / elapsed,
                bus.load * 1e-12 / elapsed, processing / packets.size(), total / packets.size());
    for (size_t p = 0; p < shares.size(); ++p) std::printf("%s%llu", p ? ", " : "", static_cast<unsigned long long>(shares[p]));
    std::printf("]}\n");
    return completed == packets.size() ? 0 : 1;
}
