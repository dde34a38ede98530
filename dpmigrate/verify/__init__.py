"""The proof: original and migrated program run side by side on scratch copies, and what they did is compared.

The probe (``inject/dpmigrate_probe``) records from inside, ``scratch`` makes the copies, ``runs`` starts them, ``judge`` compares the records. None of
them knows the analyser: any pair of programs can be judged.
"""
