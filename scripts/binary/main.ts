/** The executable's way in: the service, and stack traces that name its source lines. */
import "../../src/main.ts"
// After the service: what loads before this is spared the reading of the map.
import "./Traces.ts"
