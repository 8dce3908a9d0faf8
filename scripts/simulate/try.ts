import { bundle } from "./Bundle.ts"
import { run } from "./Run.ts"
import { make } from "./Story.ts"
const hr = process.hrtime.bigint.bind(process.hrtime)
const now = () => Number(hr()) / 1e6
let t = now()
const scripts = await bundle()
console.log("bundle", now() - t); t = now()
const [seed = "1", n = "30", loud] = process.argv.slice(2)
const out = await run(make(seed, Number(n)), scripts, loud ? console.log : undefined)
console.log({ ...out, trace: out.trace.length })
console.log("run", now() - t)
process.exit(0)
