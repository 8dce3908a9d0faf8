// Sets a process back by so many days: preloaded (`--import file:///…/shifted-clock.mjs?days=366`) into the issuer and the service while people
// sign in whose calls are to lie in the year behind us.
const days = Number(new URL(import.meta.url).searchParams.get("days"))
const { now } = Date
const shifted = () => now() - days * 86_400_000

globalThis.Date = class extends Date {
  constructor(...values) {
    if (values.length === 0) super(shifted())
    else super(...values)
  }

  static now() {
    return shifted()
  }
}
