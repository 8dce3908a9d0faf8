/** The guides that ship with this version: `tollgate help GUIDE` prints one, and `/docs/guides` shows them as pages. */
import { read } from "./GuideFiles.ts"

/** The guides in reading order, each with a line that describes it. */
export const guides = {
  "first-hour": "from the executable to colleagues with their own keys",
  company: "sign-in with the company's own issuer, groups and teams",
  clients: "calls from SDKs and coding agents; retries, key limits, budgets, OAuth",
  configure: "models, prices, vendors, environment",
  operate: "commands, monitoring, backup, upgrades, payments",
  "class-of-forty": "forty people from a file, credit that renews, plans, and vouchers",
  resell: "sell credit with Stripe, at your own prices",
  postgres: "PostgreSQL, several nodes, moving the database",
  embed: "layers and entry points for host programs",
  "your-ledger": "testing your own ledger with the property suites",
  errors: "statuses, codes and how to handle each of them"
} as const

export type GuideName = keyof typeof guides

export const isGuide = (name: string): name is GuideName => Object.hasOwn(guides, name)

export const textOf = (name: GuideName): string => read(name)
