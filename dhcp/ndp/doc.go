// Package ndp answers the Router Solicitations of machines that are in iPXE.
//
// iPXE configures IPv4 and IPv6 side by side and goes on when both have ended.
// Where no router answers it solicits for 16 seconds (the iPXE of 2019 that
// distributions ship; newer ones for 4), whatever DHCP said meanwhile. A Router
// Advertisement (RFC 4861) that says "I am no router, there is no prefix and no
// DHCPv6 here" ends that wait at once.
//
// Judge and Advertise are functions from values to values; Server is the loop
// around them. Only machines in a boot are answered, each by a packet to itself
// alone: no other host on the network ever hears of it.
package ndp
