/* Holds UDP port 4500 as an IKE daemon does, so that the kernel takes the ESP that comes to it (RFC 3948). */
#include <arpa/inet.h>
#include <linux/xfrm.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENCAP = 100, ESP_IN_UDP = 2, POLICY_OF_SOCKET = 17, POLICY_OF_SOCKET_V6 = 35 };

/* The outer packet is not protected: a policy for the hosts themselves (transport mode) would drop it. */
static int bypass(int socket_, int family, int way)
{
    struct xfrm_userpolicy_info policy = {.action = XFRM_POLICY_ALLOW, .sel.family = family, .dir = way};
    return family == AF_INET ? setsockopt(socket_, IPPROTO_IP, POLICY_OF_SOCKET, &policy, sizeof policy)
                             : setsockopt(socket_, IPPROTO_IPV6, POLICY_OF_SOCKET_V6, &policy, sizeof policy);
}

static int hold(int family, const struct sockaddr *address, socklen_t length)
{
    int encap = ESP_IN_UDP, one = 1;
    int socket_ = socket(family, SOCK_DGRAM, 0);
    if (family == AF_INET6)
        setsockopt(socket_, IPPROTO_IPV6, 26 /* IPV6_V6ONLY */, &one, sizeof one);
    return bind(socket_, address, length) || bypass(socket_, family, XFRM_POLICY_IN) ||
           bypass(socket_, family, XFRM_POLICY_OUT) || setsockopt(socket_, IPPROTO_UDP, ENCAP, &encap, sizeof encap);
}

int main(void)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(4500)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(4500)};
    if (hold(AF_INET, (void *)&four, sizeof four) || hold(AF_INET6, (void *)&six, sizeof six)) {
        perror("encap");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    pause();
}
