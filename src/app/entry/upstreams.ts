/** `tollgate/upstreams`: the addresses that serve models and tools, by the names that models and providers give them. */
import "./contracts.ts"

export { fields as settings, layer as layerSettings } from "../../upstream/models/Settings.ts"
export { UnknownUpstream, UnspokenProtocol, Upstreams } from "../../upstream/models/Upstreams.ts"
export type { UpstreamSettings } from "../../upstream/models/Upstreams.ts"
