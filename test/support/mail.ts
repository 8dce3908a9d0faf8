/** Reads the letters that a sandbox has received. */
import type { Service } from "./Service.ts"

export interface Letter {
  readonly to: string
  readonly subject: string
  readonly text: string
}

export const lettersTo = async (service: Service, email: string): Promise<ReadonlyArray<Letter>> =>
  ((await service.control("/mail")) as ReadonlyArray<Letter>).filter(({ to }) => to === email)

const tokenOf = ({ text }: Letter): string | undefined => /\/(?:transfer-)?invites\/([0-9a-f]{64})/.exec(text)?.[1]

/** Waits for the `n`-th letter with a link to this address, counted from 1. Returns the link's token. */
export const linkTo = async (service: Service, email: string, n = 1): Promise<string> => {
  for (let i = 0; i < 100; i++) {
    const tokens = (await lettersTo(service, email)).map(tokenOf).filter((token) => token !== undefined)
    if (tokens.length >= n) return tokens[n - 1]!
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`no ${n}. letter with a link came to ${email}`)
}
