/** `tollgate/upstreams`: the addresses of models and tools, by name. */
import "./contracts.ts"

export { fields as settings, layer as layerSettings } from "../../upstream/models/Settings.ts"
export { UnknownUpstream, UnspokenProtocol, Upstreams } from "../../upstream/models/Upstreams.ts"
export type { UpstreamSettings } from "../../upstream/models/Upstreams.ts"
