/** Tests whether an address is public. An address in a vendor's response must not lead into the service's own network. */
import { lookup } from "node:dns"
import { BlockList, isIP } from "node:net"
import type { LookupFunction } from "node:net"

const inside = new BlockList()
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3]
] as const)
  inside.addSubnet(network, prefix, "ipv4")
for (const [network, prefix] of [
  ["::", 127],
  // IPv6 addresses that contain an IPv4 address, for translation or tunnels.
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8]
] as const)
  inside.addSubnet(network, prefix, "ipv6")

/** Returns whether a numeric address is public. An IPv4 address in IPv6 notation counts as IPv4. */
export const isPublic = (address: string): boolean => {
  const family = isIP(address)
  return family !== 0 && !inside.check(address, family === 6 ? "ipv6" : "ipv4")
}

/** Returns whether a URL's host is a name or a public address. `lookupPublic` checks the addresses of names. */
export const mayBePublic = (hostname: string): boolean => {
  const bare = hostname.replace(/^\[(.*)\]$/, "$1")
  return isIP(bare) === 0 || isPublic(bare)
}

/** Resolves a name to its public addresses. The check applies to the address of the connection itself, so DNS rebinding cannot bypass it. */
export const lookupPublic: LookupFunction = (hostname, options, callback) =>
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error !== null) return callback(error, "", 4)
    const addresses = found.filter(({ address }) => isPublic(address))
    const [first] = addresses
    if (first === undefined) return callback(new Error(`${hostname} has no public address`), "", 4)
    if (options.all === true) return callback(null, addresses)
    return callback(null, first.address, first.family)
  })
