// The host model of the papers on the event core of ns-3: objects and scheduled events, no network devices.
//
//   host_ns3 SIZES.csv RATE_BPS ACCELERATORS QUEUE
//
// ns-3 serves events of one instant in the order in which they were scheduled. Prints one line of JSON.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <ns3/core-module.h>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr int64_t OVERHEAD = 40;                                  // bytes
constexpr int64_t CPU_INIT = 1'000'000, CPU_BLOCK = 1'138'636;    // picoseconds
constexpr int64_t CARD_INIT = 1'000'000, CARD_BLOCK = 440'000;
constexpr double BUS_CLOCK = 66e6;
constexpr int64_t BUS_WIDTH = 4, BUS_ADDRESS = 1;

struct Packet {
    int64_t bytes, arrival, chosen = 0, done = 0;
    size_t processor = 0;
    int64_t Blocks() const { return (bytes + 15) / 16; }
    int64_t Transfer() const {
        const int64_t cycles = BUS_ADDRESS + (bytes + BUS_WIDTH - 1) / BUS_WIDTH;
        return static_cast<int64_t>(cycles * 1e12 / BUS_CLOCK + 0.5);
    }
};

std::vector<Packet> packets;

int64_t Now() { return Simulator::Now().GetPicoSeconds(); }

// First come, first served; one transfer at a time.
class Bus {
public:
    int64_t load = 0;
    void Ask(int64_t time, std::function<void()> done) {
        m_requests.push_back({time, done});
        if (m_requests.size() == 1) Grant();
    }

private:
    struct Request {
        int64_t time;
        std::function<void()> done;
    };
    std::deque<Request> m_requests;
    void Grant() {
        load += m_requests.front().time;
        Simulator::Schedule(PicoSeconds(m_requests.front().time), &Bus::Ended, this);
    }
    void Ended() {
        auto done = m_requests.front().done;
        m_requests.pop_front();
        // The next transfer was asked for before whatever follows from this one.
        if (!m_requests.empty()) Grant();
        done();
    }
};

// A FIFO and a server, with what the rule of finish time needs of them.
class Processor {
public:
    std::function<void()> room;
    Processor(int64_t init, int64_t block, size_t limit, Bus *bus)
        : m_init(init), m_block(block), m_limit(limit), m_bus(bus) {}
    int64_t Cost(const Packet &packet) const { return m_init + m_block * packet.Blocks(); }
    int64_t Wait() const {
        return m_waitingCost + std::max<int64_t>(0, m_takenCost - (Now() - m_takenAt));
    }
    bool Full() const { return m_queue.size() >= m_limit; }
    void Push(Packet *packet) {
        m_queue.push_back(packet);
        m_waitingCost += Cost(*packet);
        if (!m_current) Start();
    }

private:
    int64_t m_init, m_block;
    size_t m_limit;
    Bus *m_bus;  // none: a CPU
    std::deque<Packet *> m_queue;
    Packet *m_current = nullptr;
    int64_t m_waitingCost = 0, m_takenAt = 0, m_takenCost = 0;

    void Start() {
        m_current = m_queue.front();
        m_queue.pop_front();
        m_takenAt = Now();
        m_takenCost = Cost(*m_current);
        m_waitingCost -= m_takenCost;
        Simulator::ScheduleNow(room);
        if (m_bus) m_bus->Ask(m_current->Transfer(), [this] { Compute(); });
        else Compute();
    }
    void Compute() { Simulator::Schedule(PicoSeconds(m_takenCost), &Processor::Computed, this); }
    void Computed() {
        if (m_bus) m_bus->Ask(m_current->Transfer(), [this] { Finish(); });
        else Finish();
    }
    void Finish() {
        m_current->done = Now();
        m_current = nullptr;
        if (!m_queue.empty()) Start();
    }
};

class Dispatcher {
public:
    std::vector<std::unique_ptr<Processor>> processors;  // the CPU first
    void Place() {
        while (m_next < packets.size() && packets[m_next].arrival <= Now()) {
            Packet &packet = packets[m_next];
            if (!m_chosen) Choose(packet);
            Processor &processor = *processors[packet.processor];
            if (processor.Full()) return;
            m_chosen = false;
            ++m_next;
            processor.Push(&packet);
        }
        if (m_next < packets.size() && !m_arrival.IsRunning()) {
            m_arrival = Simulator::Schedule(PicoSeconds(packets[m_next].arrival - Now()), &Dispatcher::Arrived, this);
        }
    }

private:
    size_t m_next = 0;
    bool m_chosen = false;
    EventId m_arrival;
    // After all else of this instant.
    void Arrived() { Simulator::ScheduleNow(&Dispatcher::Place, this); }
    void Choose(Packet &packet) {
        int64_t best = std::numeric_limits<int64_t>::max();
        for (size_t k = 1; k <= processors.size(); ++k) {  // accelerators win ties
            const size_t at = k % processors.size();
            const int64_t finishing = processors[at]->Wait() + processors[at]->Cost(packet);
            if (finishing < best) {
                best = finishing;
                packet.processor = at;
            }
        }
        packet.chosen = Now();
        m_chosen = true;
    }
};

}  // namespace

int main(int argc, char **argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: host_ns3 SIZES.csv RATE_BPS ACCELERATORS QUEUE\n");
        return 2;
    }
    const double rate = std::atof(argv[2]);
    const size_t cards = std::strtoul(argv[3], nullptr, 10), limit = std::strtoul(argv[4], nullptr, 10);
    std::ifstream file(argv[1]);
    std::string line;
    std::getline(file, line);
    int64_t sent = 0;
    while (std::getline(file, line)) {
        Packet packet;
        packet.bytes = std::atol(line.c_str()) + OVERHEAD;
        packet.arrival = static_cast<int64_t>(8.0L * sent * 1e12L / rate + 0.5L);
        packets.push_back(packet);
        sent += packet.bytes;
    }
    Time::SetResolution(Time::PS);
    Bus bus;
    Dispatcher dispatcher;
    dispatcher.processors.push_back(std::make_unique<Processor>(CPU_INIT, CPU_BLOCK, limit, nullptr));
    for (size_t card = 0; card < cards; ++card) {
        dispatcher.processors.push_back(std::make_unique<Processor>(CARD_INIT, CARD_BLOCK, limit, &bus));
    }
    for (auto &processor : dispatcher.processors) processor->room = [&dispatcher] { dispatcher.Place(); };
    const std::clock_t start = std::clock();
    Simulator::ScheduleNow(&Dispatcher::Place, &dispatcher);
    Simulator::Run();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    Simulator::Destroy();

    int64_t last = 0;
    double processing = 0, total = 0;
    std::vector<size_t> shares(cards + 1);
    for (const Packet &packet : packets) {
        last = std::max(last, packet.done);
        processing += (packet.done - packet.chosen) * 1e-12;
        total += (packet.done - packet.arrival) * 1e-12;
        ++shares[packet.processor];
    }
    const double elapsed = (last - packets.front().arrival) * 1e-12;
    std::printf("{\"packets\": %zu, \"packets_per_s\": %.0f, \"throughput_bps\": %.12g, \"bus_load\": %.12g, "
                "\"processing_mean_s\": %.12g, \"total_mean_s\": %.12g, \"processor_packets\": [",
                packets.size(), packets.size() / seconds, 8.0 * sent / elapsed, bus.load * 1e-12 / elapsed,
                processing / packets.size(), total / packets.size());
    for (size_t at = 0; at < shares.size(); ++at) std::printf("%s%zu", at ? ", " : "", shares[at]);
    std::printf("]}\n");
}
