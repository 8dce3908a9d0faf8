/** The texts of the view of the person's account. */

export const accountTexts = {
  title: "Account",
  lead: "Your name here, and the ways in which you sign in.",
  profile: "Profile",
  name: "Name",
  email: "E-mail",
  passkeys: "Passkeys",
  passkeysLead: "A passkey signs you in with a finger, a face or a PIN of your device, without a password.",
  unavailable: "Passkeys need a secure address with a domain name. This service has none.",
  unknownHere: "This browser knows no passkeys.",
  none: "No passkey yet.",
  add: "Add a passkey",
  addName: "Name",
  addHelp: "Tells your passkeys apart: the device that keeps it.",
  added: (name: string) => `The passkey ${name} signs you in from now on.`,
  dismissed: "The browser made no passkey. Try again when you are ready.",
  known: "This device has a passkey of yours already.",
  created: "Created",
  used: "Last used",
  never: "never",
  remove: "Delete",
  removeTitle: (name: string) => `Delete the passkey ${name}?`,
  removeText: "It signs you in no more. Delete it on your device too. Sessions that are open stay open.",
  removed: (name: string) => `The passkey ${name} is deleted.`
} as const
