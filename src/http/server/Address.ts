/** The address on which the service listens. This module must load fast, because it is used before the service is loaded. */

export interface Address {
  readonly host: string
  readonly port: number
}

export const hostPreset = "127.0.0.1"
export const portPreset = "8787"

export const portOf = (text: string): number | undefined =>
  /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined

/** Reads the address from the environment. Returns `undefined` if the port is invalid. */
export const addressOf = ({ HOST = hostPreset, PORT = portPreset }: NodeJS.ProcessEnv): Address | undefined => {
  const port = portOf(PORT)
  return port === undefined ? undefined : { host: HOST, port }
}
